// Where the ranks of a job go: the grammar of hosts, and the assignment of ranks to their slots (Horovod's rule).
// Thread: any (values).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halay::launch {

struct Host {
  std::string name;  // as given; IPv6 without its brackets
  int32_t slot_count = 1;
  bool operator==(const Host&) const = default;
};

// "a:2,b.example.org:4,[::1]:2". invalid_argument shows the entry and what one looks like.
Result<std::vector<Host>> parse_hosts(std::string_view list);
// Lines "name slots=N"; blank lines and #-comments are skipped. The error names the line.
Result<std::vector<Host>> parse_hostfile(std::string_view contents);

struct Slot {
  std::string host;
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0, local_size = 1;
  int32_t cross_rank = 0, cross_size = 1;
  bool operator==(const Slot&) const = default;
};

// Fills hosts in order. invalid_argument: fewer slots than ranks, both numbers shown.
Result<std::vector<Slot>> assign_slots(std::span<const Host> hosts, int32_t rank_count);

// Is `name` this machine: localhost, its own name, or one of its addresses? Asks nobody.
bool is_this_machine(std::string_view name);
std::string own_hostname();

}  // namespace halay::launch
