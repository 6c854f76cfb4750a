// Runs the Schedules of all members symbolically, under a random interleaving, and says what is wrong. An element is
// what it was made of and how it was associated; no number is touched. Pure; for tests, the simulator and tools.
//
// It holds a lane of operations one after the other, as the executor does: members run ahead of each other, messages of
// two members match in order, windows are used by halves in turn, flags only grow. It finds:
// - elements that are missing, reduced twice, in another order than promised or not the same everywhere;
// - deadlocks, messages that do not match, flags that are waited for and never raised;
// - regions touched while a transfer is pending, regions beyond their buffer, steps that are too long, writes into
//   input or into the window of another;
// - reads and writes of a window that nothing orders, by happens-before over messages and flags, so whatever the
//   interleaving; a barrier that somebody may leave too early;
// - wrong declarations (bytes sent, flags).
//
// Thread: any (no state).   Owns: nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/plan.h"

namespace halay::collective {

// What one operation asks (`problem.me` is not used) and what each member does for it.
struct CheckedOperation {
  Problem problem;
  std::vector<Schedule> schedules;
};

struct CheckOptions {
  uint64_t seed = 1;
  bool in_place = false;    // where input and output have the same size
  bool buffered = true;     // a send is done at once; false: only when the peer asks for it
  size_t window_bytes = 0;  // as in Surroundings: of one half
  bool long_steps = false;  // allow steps of more than kChunkBytes
};

struct CheckReport {
  size_t steps = 0;
  size_t messages = 0;
  // For each operation the longest chain of messages, or hand-overs of windows, that any element of a result went
  // through.
  std::vector<uint32_t> rounds;
};

// The text of a failure names operation, member and step.
Result<CheckReport> check(std::span<const CheckedOperation> operations, const CheckOptions& options);

// The Schedules of all members, by one algorithm.
CheckedOperation plan_all(const Algorithm& algorithm, Problem problem, const Surroundings& surroundings);

}  // namespace halay::collective
