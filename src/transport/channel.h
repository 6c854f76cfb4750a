// Channel: frames and tensor bytes between this rank and one peer, over one Pipe. Framing, matching and queueing live
// here once; a transport is only a Pipe.
//
// Thread: whoever holds the engine's token.   Owns: its Pipe, queued frames, data that came before it was asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "transport/pipe.h"

namespace halay::transport {

enum class FrameKind : uint8_t {
  data = 0,       // bytes of a posted transfer; matched by lane, in order
  control = 1,    // a message of control/set_control.h; lane = the set
  set_hello = 2,  // building a process set; lane = the set
  goodbye = 3,    // this rank ends normally; payload: text
  abort = 4,      // this rank ends the world; payload: culprit rank and text
  heartbeat = 5,  // payload: progress of the application thread
};

// One transfer in flight. Lives at one address from post to done; owned by the poster.
struct Transfer {
  bool done = false;
};

// Gets what is not data. Must not call back into the channel other than send_frame.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  virtual void on_frame(int32_t rank, FrameKind kind, uint64_t lane, std::span<const std::byte> payload) = 0;
};

struct ChannelCounters {
  uint64_t frames_sent = 0, frames_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t unexpected_bytes = 0;  // data that came before it was asked for, and was copied once more
};

class Channel {
 public:
  Channel(int32_t peer_rank, std::unique_ptr<Pipe> pipe);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int32_t peer_rank() const;
  // Takes a copy and never fails for lack of room (rule 4).
  void send_frame(FrameKind kind, uint64_t lane, std::span<const std::byte> payload);
  // The bytes must stay until transfer->done. Transfers of one lane and direction match in order of posting; a receive
  // must ask for exactly as many bytes as the matching send has (else the channel fails with `internal`).
  void post_send(uint64_t lane, std::span<const std::byte> bytes, Transfer* transfer);
  void post_recv(uint64_t lane, std::span<std::byte> bytes, Transfer* transfer);
  // Forgets all transfers of a lane whose owner goes away.
  void cancel_lane(uint64_t lane);

  // Moves what can be moved without blocking; true if anything moved.
  bool progress(FrameSink& sink);
  bool has_unsent() const;

  // Ok while open. After the peer's end: what was still in the pipe is delivered first, then this is not ok
  // (`peer_lost` with the peer's rank; `internal` for a broken frame).
  const Status& status() const;
  // The peer has announced its normal end; what follows is no death.
  bool said_goodbye() const;
  const ChannelCounters& counters() const;
  Pipe& pipe();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halay::transport
