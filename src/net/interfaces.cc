#include "net/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "net/errors.h"

namespace halay::net {
namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    if (!word.empty()) words.emplace_back(word);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

struct FreeInterfaces {
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

}  // namespace

Result<std::vector<InterfaceAddress>> local_addresses(std::string_view only) {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) return system_failure("list network interfaces", "", errno);
  const std::unique_ptr<ifaddrs, FreeInterfaces> owner(head);

  const std::vector<std::string> wanted = split(only);
  std::vector<std::string> names;
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* at = head; at != nullptr; at = at->ifa_next) {
    if (std::ranges::find(names, at->ifa_name) == names.end()) names.emplace_back(at->ifa_name);
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const bool ipv4 = at->ifa_addr->sa_family == AF_INET, ipv6 = at->ifa_addr->sa_family == AF_INET6;
    if (!ipv4 && !ipv6) continue;
    if (!wanted.empty() && std::ranges::find(wanted, at->ifa_name) == wanted.end()) continue;
    const socklen_t raw_bytes = ipv4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    HALAY_TRY(const Address address, Address::from_system(at->ifa_addr, raw_bytes));
    if (!address.is_link_local()) found.push_back({at->ifa_name, address.with_port(0)});
  }
  for (const std::string& name : wanted) {
    if (std::ranges::find(names, name) == names.end()) {
      return Status::invalid_argument(text("no network interface '", name, "' here; there are ", names));
    }
  }
  if (found.empty() && !wanted.empty()) {
    return Status::invalid_argument(
        text("network interfaces ", wanted, " have no address to offer; there are ", names));
  }
  std::vector<InterfaceAddress> sorted;
  for (const bool loopback : {false, true}) {
    for (const InterfaceAddress& at : found) {
      if (at.address.is_loopback() == loopback) sorted.push_back(at);
    }
  }
  return sorted;
}

bool is_local(const Address& address) {
  if (address.is_loopback()) return true;
  const auto addresses = local_addresses();
  if (!addresses.ok()) return false;
  const Address bare = address.with_port(0);
  return std::ranges::any_of(addresses.value(), [&](const InterfaceAddress& at) { return at.address == bare; });
}

}  // namespace halay::net
