// One connection while the world is being built: handshake, then (between processes of one machine) the passing of
// memory and doorbells. Never blocks.
//
// Thread: one.   Owns: the connection until it is taken.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "net/connect.h"
#include "net/stream.h"
#include "region/doorbell.h"
#include "region/local_socket.h"
#include "region/segment.h"
#include "transport/handshake.h"

namespace halay::transport {

// A connection with a peer who has proved himself.
struct MeshLink {
  std::unique_ptr<net::Stream> stream;  // TCP; null: local
  UniqueFd local_socket;
  region::Segment segment;  // the pair's memory
  region::Doorbell peer_bell;
  UniqueFd process_watch;  // readable once the peer's process has ended; may be empty
  bool made() const { return stream || local_socket; }
};

class Conversation {
 public:
  struct Surroundings {
    HandshakeIdentity identity;
    size_t pair_bytes = 0;
    const region::Doorbell* bell = nullptr;  // this rank's
  };

  // Incoming.
  Conversation(const Surroundings& surroundings, UniqueFd local_socket);
  Conversation(const Surroundings& surroundings, std::unique_ptr<net::Stream> stream);
  // Outgoing.
  Conversation(const Surroundings& surroundings, int32_t target, UniqueFd local_socket);
  Conversation(const Surroundings& surroundings, int32_t target, net::Connecting connecting);

  int descriptor() const;
  bool wants_write() const { return connecting_ || !outgoing_.empty(); }
  // Does what can be done. Not ok: this connection is of no use.
  Status advance();
  bool done() const { return done_ && outgoing_.empty(); }
  bool local() const { return local_; }
  // -1 for an incoming one that has not proved itself.
  int32_t peer() const { return outgoing_side_ || handshake_.complete() ? handshake_.peer() : -1; }
  MeshLink take_link() { return std::move(link_); }

  Time expires = Time::never();
  std::string where;  // the address, for messages

 private:
  struct Message {
    std::vector<std::byte> bytes;
    std::vector<int> descriptors;  // lent
  };

  void say(std::vector<std::byte> bytes, std::vector<int> descriptors = {});
  Status flush();
  Status shake();
  Result<bool> receive(size_t count);
  Status after_handshake();
  Status receive_memory();
  Status receive_bell();

  const Surroundings* surroundings_;
  Handshake handshake_;
  bool local_ = false, outgoing_side_ = false, passing_ = false, done_ = false;
  std::optional<net::Connecting> connecting_;
  MeshLink link_;
  std::deque<Message> outgoing_;
  std::vector<std::byte> incoming_;
  region::LocalMessage message_;
};

}  // namespace halay::transport
