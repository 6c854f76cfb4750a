#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace halay::net {
namespace {

Status not_an_address(std::string_view text_given) {
  return Status::invalid_argument(
      text("'", text_given, "' is not an address: want 10.0.0.1:8000, [2001:db8::1]:8000, unix:@name or unix:/path"));
}

std::optional<uint16_t> port_from(std::string_view digits) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return port;
}

template <typename T>
const T& as(const sockaddr* raw) {
  return *reinterpret_cast<const T*>(raw);
}

}  // namespace

Result<Address> Address::parse(std::string_view given) {
  if (given.starts_with("unix:@")) return abstract(given.substr(6));
  Address address;
  if (given.starts_with("unix:")) {
    const std::string_view path = given.substr(5);
    auto& un = reinterpret_cast<sockaddr_un&>(address.storage_);
    if (path.empty() || path.size() >= sizeof un.sun_path) return not_an_address(given);
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, path.data(), path.size());
    address.raw_bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
    return address;
  }
  const size_t colon = given.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(given);
  const std::optional<uint16_t> port = port_from(given.substr(colon + 1));
  if (!port) return not_an_address(given);
  std::string host(given.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    auto& in6 = reinterpret_cast<sockaddr_in6&>(address.storage_);
    if (::inet_pton(AF_INET6, host.c_str(), &in6.sin6_addr) != 1) return not_an_address(given);
    in6.sin6_family = AF_INET6;
    address.raw_bytes_ = sizeof in6;
  } else {
    auto& in4 = reinterpret_cast<sockaddr_in&>(address.storage_);
    if (::inet_pton(AF_INET, host.c_str(), &in4.sin_addr) != 1) return not_an_address(given);
    in4.sin_family = AF_INET;
    address.raw_bytes_ = sizeof in4;
  }
  return address.with_port(*port);
}

Result<Address> Address::abstract(std::string_view name) {
  Address address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage_);
  if (name.empty() || name.size() + 1 > sizeof un.sun_path || name.find('\0') != std::string_view::npos) {
    return not_an_address(halay::text("unix:@", name));
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path + 1, name.data(), name.size());
  address.raw_bytes_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<Address> Address::from_system(const sockaddr* raw, socklen_t raw_bytes) {
  Address address;
  if (raw->sa_family == AF_INET6 && raw_bytes >= sizeof(sockaddr_in6)) {
    const auto& in6 = as<sockaddr_in6>(raw);
    if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
      auto& in4 = reinterpret_cast<sockaddr_in&>(address.storage_);
      in4.sin_family = AF_INET;
      in4.sin_port = in6.sin6_port;
      std::memcpy(&in4.sin_addr, in6.sin6_addr.s6_addr + 12, 4);
      address.raw_bytes_ = sizeof in4;
      return address;
    }
  }
  const bool known = raw->sa_family == AF_INET || raw->sa_family == AF_INET6 || raw->sa_family == AF_UNIX;
  if (!known || raw_bytes > sizeof address.storage_) {
    return Status::unsupported(halay::text("address family ", raw->sa_family, " is not one of IPv4, IPv6, unix"));
  }
  std::memcpy(&address.storage_, raw, raw_bytes);
  address.raw_bytes_ = raw_bytes;
  return address;
}

Address Address::any_ipv6(uint16_t port) {
  Address address;
  reinterpret_cast<sockaddr_in6&>(address.storage_).sin6_family = AF_INET6;
  address.raw_bytes_ = sizeof(sockaddr_in6);
  return address.with_port(port);
}

Address Address::any_ipv4(uint16_t port) {
  Address address;
  reinterpret_cast<sockaddr_in&>(address.storage_).sin_family = AF_INET;
  address.raw_bytes_ = sizeof(sockaddr_in);
  return address.with_port(port);
}

std::string Address::text() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &as<sockaddr_in>(raw()).sin_addr, host, sizeof host);
    return halay::text(host, ":", port());
  }
  if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &as<sockaddr_in6>(raw()).sin6_addr, host, sizeof host);
    return halay::text("[", host, "]:", port());
  }
  if (!is_unix()) return "nowhere";
  constexpr size_t kBefore = offsetof(sockaddr_un, sun_path);
  if (raw_bytes_ <= kBefore) return "unix:unnamed";
  const char* path = as<sockaddr_un>(raw()).sun_path;
  if (path[0] != '\0') return halay::text("unix:", std::string_view(path, ::strnlen(path, raw_bytes_ - kBefore)));
  return halay::text("unix:@", std::string_view(path + 1, raw_bytes_ - kBefore - 1));
}

bool Address::is_loopback() const {
  if (family() == AF_INET) return (ntohl(as<sockaddr_in>(raw()).sin_addr.s_addr) >> 24) == 127;
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&as<sockaddr_in6>(raw()).sin6_addr);
  return is_unix();
}

bool Address::is_link_local() const {
  if (family() == AF_INET) return (ntohl(as<sockaddr_in>(raw()).sin_addr.s_addr) >> 16) == 0xa9fe;
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as<sockaddr_in6>(raw()).sin6_addr);
}

uint16_t Address::port() const {
  if (family() == AF_INET) return ntohs(as<sockaddr_in>(raw()).sin_port);
  if (family() == AF_INET6) return ntohs(as<sockaddr_in6>(raw()).sin6_port);
  return 0;
}

Address Address::with_port(uint16_t port) const {
  Address address = *this;
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(address.storage_).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(address.storage_).sin6_port = htons(port);
  return address;
}

}  // namespace halay::net
