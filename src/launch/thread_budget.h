// How many threads each process may use: the cores shared out fairly, unless the user has said otherwise (rule H-2).
// Thread: any (values).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halay::launch {

struct ThreadBudget {
  int32_t threads = 1;
  std::vector<std::string> settings;  // "OMP_NUM_THREADS=2" ...: what the user has not set
  std::string line;                   // says it in one line
};

// `environment` holds "NAME=value" entries. What the user set for OMP_NUM_THREADS is what the others get too.
ThreadBudget thread_budget(int32_t core_count, int32_t local_size, std::span<const std::string> environment);

// Cores that this process may run on: its affinity, and the CPU quota of its control group.
int32_t usable_cores();

// The value of NAME in "NAME=value" entries; null if it is not there or empty.
const char* value_in(std::span<const std::string> environment, std::string_view name);

}  // namespace halay::launch
