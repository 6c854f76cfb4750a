// Address: where a socket listens or connects, as a value and as text.
//   "10.0.0.1:8000"   "[fe80::1]:8000"   "unix:@name" (abstract, Linux)   "unix:/path"
// Never made from a host name: peers try the addresses of each other (see interfaces.h).
// Thread: any (value).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace halay::net {

class Address {
 public:
  Address() = default;
  // invalid_argument shows the text and what an address looks like.
  static Result<Address> parse(std::string_view text);
  // A name in the machine's abstract namespace: no file, gone with its last socket.
  static Result<Address> abstract(std::string_view name);
  // IPv4 inside IPv6 (::ffff:10.0.0.1) becomes plain IPv4.
  static Result<Address> from_system(const sockaddr* raw, socklen_t raw_bytes);
  // All local addresses, IPv6 and IPv4 together where the machine has IPv6.
  static Address any_ipv6(uint16_t port);
  static Address any_ipv4(uint16_t port);

  std::string text() const;
  int family() const { return storage_.ss_family; }
  bool is_unix() const { return family() == AF_UNIX; }
  bool is_loopback() const;    // true for unix sockets too: they do not leave the machine
  bool is_link_local() const;  // meaningless on another machine
  uint16_t port() const;
  Address with_port(uint16_t port) const;

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t raw_bytes() const { return raw_bytes_; }
  bool operator==(const Address& other) const { return text() == other.text(); }

 private:
  sockaddr_storage storage_{};
  socklen_t raw_bytes_ = 0;
};

}  // namespace halay::net
