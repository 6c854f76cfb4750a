// Listener: a socket that peers connect to. Ports are ephemeral unless one is demanded.
// Thread: one at a time.   Owns: its descriptor.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/unique_fd.h"
#include "net/address.h"
#include "net/stream.h"

namespace halay::net {

class Listener {
 public:
  // Port 0 chooses one. Close-on-exec, non-blocking.
  static Result<Listener> open(const Address& address);
  // All addresses of this machine, IPv6 and IPv4 where it has both.
  static Result<Listener> open_all(uint16_t port = 0);

  // The next who connected; null: nobody waits now. Not ok: descriptors or memory are short, or the socket is broken.
  Result<std::unique_ptr<Stream>> accept();
  const Address& address() const { return address_; }
  uint16_t port() const { return address_.port(); }
  int fd() const { return socket_.get(); }

 private:
  Listener(UniqueFd socket, const Address& address) : socket_(std::move(socket)), address_(address) {}
  UniqueFd socket_;
  Address address_;
};

}  // namespace halay::net
