// Fabric: all ways between this rank and the others of one world; built once, dies as a whole.
// Thread: whoever holds the engine's token, but wait() and wake() as they say.   Owns: channels, windows, sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "transport/channel.h"

namespace halay::transport {

// Ranks of one process meet here; a test makes one and gives it to all its engines. Thread: any.
class InprocHub;
std::shared_ptr<InprocHub> make_inproc_hub();

struct FabricOptions {
  std::string transport = "auto";  // auto, shm, tcp, inproc
  std::shared_ptr<InprocHub> hub;  // inproc only
  std::string interfaces;          // comma list of interface names to offer; empty: all
  std::string key;                 // shared secret of the job; peers prove it before anything is parsed
  std::string build_id;            // compared at world build, with wire version, byte order and limits (rule 19)
  std::string algorithms;  // what decides which algorithm runs, in words; compared, as all ranks must choose alike
  int64_t connect_timeout_ms = 30'000;
  int64_t heartbeat_ms = 15'000;  // a silent TCP peer is lost after this
  size_t window_bytes = 0;        // 0: chosen from the number of ranks
};

// Where this rank can be reached, before the world exists. `address` is what the out-of-band exchange carries.
class Door {
 public:
  virtual ~Door() = default;
  virtual std::span<const std::byte> address() const = 0;
};
Result<std::unique_ptr<Door>> open_door(const FabricOptions& options);

// The data area and flags of one member of a process set, in memory that all members of the set can see.
struct WindowView {
  std::byte* data = nullptr;   // FabricOptions::window_bytes
  std::byte* lines = nullptr;  // two lines of 128 bytes: the tiny path (payload and its counter in one line)
  void* flags = nullptr;       // kFlagCount counters (std::atomic<uint64_t>), 128 bytes apart
};

class Fabric {
 public:
  virtual ~Fabric() = default;

  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  // Index of the machine of a rank: 0 for the machine of rank 0, then by first appearance.
  virtual int32_t machine_of(int32_t rank) const = 0;
  // Null for this rank itself.
  virtual Channel* channel(int32_t rank) = 0;

  // Windows of a process set: made by each member, seen by all. open_windows() makes and offers this rank's window;
  // windows_ready() says whether those of all members have arrived. Not ok from open_windows(): this set does without.
  virtual bool windows_possible(std::span<const int32_t> ranks) const = 0;
  virtual Status open_windows(uint64_t lane, std::span<const int32_t> ranks) = 0;
  virtual bool windows_ready(uint64_t lane) = 0;
  virtual WindowView window(uint64_t lane, int32_t rank) = 0;
  virtual size_t window_bytes() const = 0;
  virtual void close_windows(uint64_t lane) = 0;
  // After this rank raised flags or wrote lines in its window of the lane: rings the members that sleep (rule 8).
  virtual void announce(uint64_t /*lane*/) {}

  // Moves bytes on all channels; true if anything moved. Frames go to the sink. Deaths are seen here: the first lost
  // rank's Status is kept in status().
  virtual bool progress(FrameSink& sink, Time now) = 0;
  virtual const Status& status() const = 0;
  virtual Time next_deadline() const = 0;
  // What peers shall see in the heartbeat: operations submitted by the application so far.
  virtual void set_progress(uint64_t operations) = 0;

  // Sleep and wake (rule 8). prepare_wait() publishes that this rank sleeps; false: something came meanwhile, do not
  // sleep. Who waits for flags of a window looks at them once more after prepare_wait() and before wait(): only from
  // there on a peer's announce() rings. wait() then blocks in one epoll until a doorbell, a socket, wake() or the
  // deadline; it does not need the token, and it may wake for nothing, but at most once for each prepare_wait().
  // end_wait() takes the word back; it needs the token. Whoever takes the token while another thread is in wait() may
  // call it too: then peers do not ring for what is seen anyway. wake() may be called from any thread, at any time.
  virtual bool prepare_wait() = 0;
  virtual void wait(Time deadline) = 0;
  virtual void end_wait() = 0;
  virtual void wake() = 0;

  // After the world is lost: nothing shared is read or written any more; windows become private copies.
  virtual void abandon() = 0;
};

// Connects to all others; addresses[r] is the address of rank r (this rank's own included). Compares version, build id,
// limits and byte order first. The error names the ranks that could not be reached, and both values of a difference.
Result<std::unique_ptr<Fabric>> connect(std::unique_ptr<Door> door, int32_t rank,
                                        std::span<const std::vector<std::byte>> addresses,
                                        const FabricOptions& options);

}  // namespace halay::transport
