// Plans the moves of a Batch: one Schedule for each member. Pure.
// Thread: any (no state).   Owns: nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "types/batch.h"
#include "types/schedule.h"

namespace halay::collective {

// Chunks: no step moves more, so that one is in flight while the last is reduced, and chunks stay in cache.
inline constexpr size_t kChunkBytes = 256 * 1024;

// Costs of a link class, fitted or assumed: seconds a message, seconds a byte, seconds a byte reduced.
struct LinkCosts {
  double alpha = 0, beta = 0, gamma = 0;
};

// What is assumed until something is fitted, from measurements with two processes on two cores of an AMD EPYC (Zen 5):
// loopback TCP 26 us at 8 bytes, 1.1-1.2 GB/s a direction; adding in cache 160-240 GB/s for two threads, three bytes
// touched for each one reduced.
inline constexpr LinkCosts kTcpLink{26e-6, 1 / 1.15e9, 1 / 30e9};
// Messages through a ring in shared memory: two hand-overs of 0.28 us and framing; one copy in, one out, peer-written
// data at 6-20 GB/s.
inline constexpr LinkCosts kShmLink{1e-6, 1 / 6e9, 1 / 30e9};
// A window: a line handed over in 0.28 us, data of a peer's cache read at 19.7 GB/s, copied or added in cache at 50
// GB/s.
inline constexpr LinkCosts kWindowLink{0.28e-6, 1 / 19.7e9, 1 / 50e9};

// What the selector knows of the way between the members; equal on all of them.
struct Surroundings {
  // All members take part and see each other's windows: `window_bytes` bytes of data for one Schedule, which is half of
  // the data area (types/schedule.h), and lines of `inline_bytes` payload for the tiny path. 0: there are no windows.
  size_t window_bytes = 0;
  size_t inline_bytes = 0;
  LinkCosts link = kTcpLink;
  LinkCosts window_link = kWindowLink;
  // Elements of a chunk; 0: what kChunkBytes holds. For tests and tuning.
  size_t chunk_elems = 0;
  // Keep to algorithms that evaluate the canonical tree (rule 9).
  bool reproducible = false;
  // Demanded by a knob: the name of an algorithm, or empty.
  std::string force_algorithm;
};

// What a Schedule depends on. Equal on all members but `me`.
struct Problem {
  OpKind kind = OpKind::allreduce;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;
  int member_count = 1;
  int me = 0;
  int root = 0;
  size_t count_elems = 0;      // allreduce, broadcast: all; reducescatter: all of the input
  std::vector<size_t> counts;  // as in Batch::counts
  static Problem of(const Batch& batch);
};

// One row of the table of algorithms.
struct Algorithm {
  std::string_view name;
  OpKind kind;
  bool canonical;  // evaluates the canonical tree (true where nothing is reduced)
  bool needs_windows;
  // Whether it can do this problem here at all.
  bool (*fits)(const Problem&, const Surroundings&);
  // Expected seconds; formula at the head of the algorithm's file.
  double (*cost)(const Problem&, const Surroundings&);
  Schedule (*plan)(const Problem&, const Surroundings&);
};

// The table, in one place (algorithms.cc); order breaks ties.
const std::vector<Algorithm>& algorithms();

// The cheapest that fits; the same on all members. `unsupported` if force_algorithm names none that fits; the text
// lists those that do. With one member there is nothing to force.
Result<const Algorithm*> select(const Problem& problem, const Surroundings& surroundings);
// Why: one line for each algorithm of the kind, with its cost or the reason it does not fit.
std::string explain(const Problem& problem, const Surroundings& surroundings);

Result<Schedule> plan(const Problem& problem, const Surroundings& surroundings);

// The canonical association over p members (rule 9), as merges in order: value[left] = value[left] op value[right], the
// result is in value[0]. The first p - 2^k pairs are folded, then a perfect binary tree: what recursive doubling with
// folding does.
struct Merge {
  int left, right;
};
std::vector<Merge> canonical_merges(int member_count);

std::string text_of(const Schedule& schedule);

}  // namespace halay::collective
