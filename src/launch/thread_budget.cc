#include "launch/thread_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/text.h"

namespace halay::launch {
namespace {

constexpr std::string_view kFirst = "OMP_NUM_THREADS";
constexpr std::string_view kVariables[] = {kFirst, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                                           "TF_NUM_INTRAOP_THREADS"};

// cgroup v2: "max 100000" or "150000 100000"; 0 where there is no quota.
double cgroup_quota() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : 0;
}

}  // namespace

const char* value_in(std::span<const std::string> environment, std::string_view name) {
  for (const std::string& entry : environment) {
    const bool here = entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=';
    if (here) return entry.c_str() + name.size() + 1;
  }
  return nullptr;
}

int32_t usable_cores() {
  cpu_set_t set;
  int32_t cores = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(CPU_COUNT(&set), 1);
  const double quota = cgroup_quota();
  if (quota > 0) cores = std::min(cores, std::max(static_cast<int32_t>(std::lround(quota)), 1));
  return cores;
}

ThreadBudget thread_budget(int32_t core_count, int32_t local_size, std::span<const std::string> environment) {
  ThreadBudget budget;
  budget.threads = std::max(core_count / std::max(local_size, 1), 1);
  const char* chosen = value_in(environment, kFirst);
  const std::string value = chosen != nullptr ? chosen : text(budget.threads);
  std::string set, kept;
  for (const std::string_view variable : kVariables) {
    const bool by_user = value_in(environment, variable) != nullptr;
    if (!by_user) budget.settings.push_back(text(variable, "=", value));
    std::string& list = by_user ? kept : set;
    list += text(list.empty() ? "" : ", ", variable);
  }
  budget.line = text("threads: ", value, " each for ", local_size, local_size == 1 ? " process" : " processes", " on ",
                     core_count, core_count == 1 ? " core" : " cores");
  if (!set.empty()) budget.line += text(" (", set, ")");
  if (!kept.empty()) budget.line += text("; kept as you set: ", kept);
  return budget;
}

}  // namespace halay::launch
