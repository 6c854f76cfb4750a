// Connecting to a peer, and whole reads and writes with a deadline for the first words of a conversation.
// Thread: one at a time.   Owns: the socket until it is taken.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "net/address.h"
#include "net/stream.h"

namespace halay::net {

// A connection being made, without blocking: start several, watch their descriptors for writing, keep the one that
// works.
class Connecting {
 public:
  // Not ok: cannot work (no route, refused at once).
  static Result<Connecting> start(const Address& address);
  // After the descriptor became writable. true: connected; false: not yet. Not ok: names address and reason.
  Result<bool> finished();
  // The connected stream; only after finished() gave true.
  std::unique_ptr<Stream> take() &&;
  int fd() const { return socket_.get(); }
  const Address& address() const { return address_; }

 private:
  Connecting(UniqueFd socket, const Address& address) : socket_(std::move(socket)), address_(address) {}
  UniqueFd socket_;
  Address address_;
};

// Blocks until connected or the deadline; the error names the address.
Result<std::unique_ptr<Stream>> connect(const Address& address, Time deadline);

// Tries all at once and returns the first that connects. The error lists every address with its reason.
Result<std::unique_ptr<Stream>> connect_first(std::span<const Address> addresses, Time deadline);

// All bytes or an error that names the peer and `stage` ("send the hello to unix:@x: timed out after 12 of 40 bytes").
Status write_all(Stream& stream, Parts parts, std::string_view stage, Time deadline);
Status read_all(Stream& stream, std::span<std::byte> into, std::string_view stage, Time deadline);

// Waits for one descriptor; false: the deadline passed.
bool wait_readable(int fd, Time deadline);
bool wait_writable(int fd, Time deadline);

}  // namespace halay::net
