// Stream: ordered bytes to and from one peer over a socket, never blocking. Plain here; TLS comes under the same face.
// Thread: one at a time.   Owns: its descriptor.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::net {

using Parts = std::span<const std::span<const std::byte>>;

class Stream {
 public:
  virtual ~Stream() = default;
  // Takes a prefix of the concatenated parts and says how many bytes; 0: no room now. Not ok: the connection is broken.
  virtual Result<size_t> write_some(Parts parts) = 0;
  // Gives what is there; 0: nothing now, or the end (see ended()).
  virtual Result<size_t> read_some(std::span<std::byte> into) = 0;
  // The peer has closed and everything it sent has been read.
  virtual bool ended() const = 0;
  // No more bytes from here: the peer reads what was sent, then sees the end.
  virtual void end_writing() = 0;
  // For a Poller: readable when read_some() may give, writable when write_some() may take.
  virtual int fd() const = 0;
  // The peer's address as text, for messages.
  virtual const std::string& peer() const = 0;
};

// A connected socket as it is. Makes it non-blocking; small TCP segments are sent at once.
std::unique_ptr<Stream> plain_stream(UniqueFd socket, std::string peer);

// Two connected ends, for tests and for parent and child.
struct StreamPair {
  std::unique_ptr<Stream> first, second;
};
Result<StreamPair> stream_pair();

// Who is at the other end of a unix socket, by the kernel's word.
struct PeerIdentity {
  int pid = 0;
  unsigned uid = 0, gid = 0;
};
Result<PeerIdentity> peer_identity(const Stream& stream);

}  // namespace halay::net
