// The network interfaces of this machine and their addresses: what a rank offers its peers, who try them all.
// Thread: any (no state).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/address.h"

namespace halay::net {

struct InterfaceAddress {
  std::string interface;  // "eth0"
  Address address;        // port 0
};

// Addresses of the interfaces that are up, those of loopback last. Link-local ones are left out: they mean nothing
// elsewhere. `only` is a comma list of interface names, empty for all; invalid_argument names an unknown one and those
// there are.
Result<std::vector<InterfaceAddress>> local_addresses(std::string_view only = {});

// Is this one of the machine's own addresses (any port)?
bool is_local(const Address& address);

}  // namespace halay::net
