#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/errors.h"

namespace halay::net {

Result<Listener> Listener::open(const Address& address) {
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure("make a socket for", address.text(), errno);
  const int on = 1, off = 0;
  if (!address.is_unix() && address.port() != 0) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // a port of a job that has just ended
  }
  if (address.family() == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(socket.get(), address.raw(), address.raw_bytes()) != 0) {
    return system_failure("bind to", address.text(), errno);
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) return system_failure("listen on", address.text(), errno);
  sockaddr_storage bound{};
  socklen_t bound_bytes = sizeof bound;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bound_bytes) != 0) {
    return system_failure("ask the address of", address.text(), errno);
  }
  HALAY_TRY(const Address chosen, Address::from_system(reinterpret_cast<sockaddr*>(&bound), bound_bytes));
  return Listener(std::move(socket), chosen);
}

Result<Listener> Listener::open_all(uint16_t port) {
  Result<Listener> both = open(Address::any_ipv6(port));
  if (both.ok()) return both;
  return open(Address::any_ipv4(port));  // IPv6 may be switched off here
}

Result<std::unique_ptr<Stream>> Listener::accept() {
  sockaddr_storage peer{};
  socklen_t peer_bytes = sizeof peer;
  UniqueFd socket(
      ::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    // A peer that gave up before it was accepted is its own affair.
    const bool nobody =
        errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR || errno == ECONNABORTED || errno == EPROTO;
    if (nobody) return std::unique_ptr<Stream>();
    return system_failure("accept on", address_.text(), errno);
  }
  const auto from = Address::from_system(reinterpret_cast<sockaddr*>(&peer), peer_bytes);
  return plain_stream(std::move(socket), address_.is_unix() ? address_.text() : from.ok() ? from.value().text() : "?");
}

}  // namespace halay::net
