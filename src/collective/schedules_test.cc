// Every algorithm, for every number of members from 1 to 17: checked symbolically, and counted as its head says.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iostream>
#include <numeric>
#include <string>

#include "base/text.h"
#include "collective/checker.h"
#include "collective/symbolic.h"

namespace halay::collective {
namespace {

constexpr size_t kWindowBytes = 512;

size_t total(const std::vector<size_t>& counts) { return std::accumulate(counts.begin(), counts.end(), size_t{0}); }

std::vector<size_t> horovod_rows(size_t count, size_t p) {
  std::vector<size_t> counts(p, count / p);
  for (size_t i = 0; i < count % p; ++i) ++counts[i];
  return counts;
}

// ---- the formulae in the heads, written once more ------------------------------------------------------------------

struct Expectation {
  uint32_t rounds = 0;
  size_t sent_bytes = 0;
  size_t slack_bytes = 0;
};

size_t power_below(size_t p) { return std::bit_floor(p); }
uint32_t log2_below(size_t p) { return static_cast<uint32_t>(std::bit_width(p) - 1); }

size_t part(size_t n, size_t p, size_t i) { return horovod_rows(n, p)[i % p]; }

// By members counted from the root.
size_t subtree(size_t v, size_t p) { return v == 0 ? p : std::min(v & -v, p - v); }

size_t binomial_children(size_t v, size_t p) {
  size_t children = 0;
  for (size_t distance = 1; v + distance < p && (v == 0 || distance < (v & -v)); distance *= 2) ++children;
  return children;
}

Expectation expected_for(const Algorithm& algorithm, const Problem& problem, size_t me) {
  const auto p = static_cast<size_t>(problem.member_count);
  const size_t n = problem.count_elems, narrow = bytes_of(problem.dtype),
               wide = bytes_of(accumulator_of(problem.dtype));
  const size_t folded = p - power_below(p);
  const uint32_t k = log2_below(p);
  const bool takes = me < 2 * folded && me % 2 == 0, gives = me < 2 * folded && me % 2 == 1;
  const std::vector<size_t>& counts = problem.counts;
  const std::string name(algorithm.name);
  if (name == "alone") return {0, 0};
  if (name == "shm_owner") return {2, 0};
  if (name.starts_with("shm_")) return {1, 0};
  if (name == "recursive_doubling") {
    const uint32_t extra = folded == 0 ? 0 : 2 * folded <= power_below(p) ? 1 : 2;
    return {k + extra, gives ? n * wide : k * n * wide + (takes ? n * narrow : 0)};
  }
  if (name == "halving_doubling") {
    const uint32_t rounds = 2 * k + (folded ? 2 : 0);
    if (gives) return {rounds, n * wide};
    const size_t kept = n / power_below(p);
    return {rounds, (n - kept) * (wide + narrow) + (takes ? n * narrow : 0), (k + 1) * (wide + narrow)};
  }
  if (name == "direct" && problem.kind == OpKind::allreduce) {
    return {2, (n - part(n, p, me)) * narrow + (p - 1) * part(n, p, me) * narrow};
  }
  if (name == "direct" && problem.kind == OpKind::reducescatter) return {1, (total(counts) - counts[me]) * narrow};
  if (name == "direct" && problem.kind == OpKind::allgather) return {1, (p - 1) * counts[me] * narrow};
  if (name == "ring" && problem.kind == OpKind::allreduce) {
    size_t bytes = 0;
    for (size_t s = 0; s < 2 * (p - 1); ++s) bytes += part(n, p, me + 2 * p - s) * (s > 0 && s < p - 1 ? wide : narrow);
    return {static_cast<uint32_t>(2 * (p - 1)), bytes};
  }
  if (name == "ring" && problem.kind == OpKind::reducescatter) {
    size_t bytes = 0;
    for (size_t s = 0; s < p - 1; ++s) bytes += counts[(me + 2 * p - 1 - s) % p] * (s > 0 ? wide : narrow);
    return {static_cast<uint32_t>(p - 1), bytes};
  }
  if (name == "ring") return {static_cast<uint32_t>(p - 1), (total(counts) - counts[(me + 1) % p]) * narrow};
  const size_t v = (me + p - static_cast<size_t>(problem.root)) % p;
  if (name == "binomial") {
    uint32_t depth = 0;
    for (size_t i = 0; i < p; ++i) depth = std::max(depth, static_cast<uint32_t>(std::popcount(i)));
    return {depth, binomial_children(v, p) * n * narrow};
  }
  if (name == "scatter_allgather") {
    size_t elems = 0;
    const size_t next = (v + 1) % p;
    for (size_t i = v + 1; i < v + subtree(v, p); ++i) {
      for (size_t child = i; child != v; child &= child - 1) {
        if ((child & (child - 1)) == v) elems += part(n, p, i);  // a part of the subtree of one child
      }
    }
    for (size_t i = 0; i < p; ++i) elems += i >= next && i < next + subtree(next, p) ? 0 : part(n, p, i);
    return {static_cast<uint32_t>(p - 1), elems * narrow};
  }
  if (name == "pairwise") {
    size_t elems = 0;
    for (size_t d = 0; d < p; ++d) elems += d == me ? 0 : counts[me * p + d];
    return {1, elems * narrow};
  }
  if (name == "dissemination") return {static_cast<uint32_t>(std::bit_width(p - 1)), 0};
  ADD_FAILURE() << "no formula for " << name;
  return {};
}

// ---- the matrix ----------------------------------------------------------------------------------------------------

struct Tally {
  size_t schedules = 0, operations = 0, steps = 0, messages = 0;
};

// Whether every part has an element, so that the longest chain is really walked.
bool all_parts_full(const Problem& problem) {
  const auto p = static_cast<size_t>(problem.member_count);
  if (problem.kind == OpKind::barrier) return true;
  if (problem.counts.empty()) return problem.count_elems >= p;
  return std::ranges::find(problem.counts, 0u) == problem.counts.end();
}

void expect_sound(const Algorithm& algorithm, const Problem& problem, const Surroundings& surroundings,
                  const CheckOptions& options, Tally& tally) {
  const CheckedOperation operation = plan_all(algorithm, problem, surroundings);
  const std::string what =
      text(algorithm.name, ' ', algorithm.kind, ", p = ", problem.member_count, ", n = ", problem.count_elems,
           ", counts ", problem.counts.size() < 20 ? problem.counts : std::vector<size_t>{}, ", root ", problem.root,
           ", ", name_of(problem.dtype), ", chunk ", surroundings.chunk_elems, ", in place ", options.in_place,
           ", buffered ", options.buffered, ", seed ", options.seed);
  const Result<CheckReport> report = check({&operation, 1}, options);
  ASSERT_TRUE(report.ok()) << what << "\n" << report.status().text();
  const uint32_t measured = report.value().rounds[0];
  for (size_t m = 0; m < operation.schedules.size(); ++m) {
    const Schedule& schedule = operation.schedules[m];
    const Expectation expected = expected_for(algorithm, problem, m);
    ASSERT_EQ(schedule.rounds, expected.rounds) << what;
    ASSERT_NEAR(static_cast<double>(schedule.sent_bytes), static_cast<double>(expected.sent_bytes),
                static_cast<double>(expected.slack_bytes))
        << what << ", member " << m;
    ASSERT_LE(measured, schedule.rounds) << what;
  }
  if (all_parts_full(problem)) {
    ASSERT_EQ(measured, operation.schedules[0].rounds) << what;
  }
  ++tally.operations;
  tally.schedules += operation.schedules.size();
  tally.steps += report.value().steps;
  tally.messages += report.value().messages;
}

std::vector<size_t> random_counts(Random& random, size_t size) {
  std::vector<size_t> counts(size);
  for (size_t& count : counts) count = random.below(3) == 0 ? 0 : random.below(14);
  return counts;
}

// What is asked of one kind with p members.
std::vector<Problem> problems_of(OpKind kind, size_t p, Random& random) {
  std::vector<Problem> problems;
  Problem problem;
  problem.kind = kind;
  problem.member_count = static_cast<int>(p);
  const size_t sizes[] = {0, 1, 2, p - 1, p, p + 1, 37, 101};
  switch (kind) {
    case OpKind::barrier:
      return {problem};
    case OpKind::allreduce:
      for (const size_t n : sizes) {
        problem.count_elems = n;
        problems.push_back(problem);
      }
      return problems;
    case OpKind::broadcast:
      for (const size_t n : sizes) {
        problem.count_elems = n;
        for (size_t root = 0; root < p; root += p <= 9 ? 1 : 5) {
          problem.root = static_cast<int>(root);
          problems.push_back(problem);
        }
      }
      return problems;
    case OpKind::reducescatter:
      for (const size_t n : sizes) {
        problem.count_elems = n;
        problem.counts = horovod_rows(n, p);
        problems.push_back(problem);
      }
      break;
    default:
      break;
  }
  for (int i = 0; i < 5; ++i) {
    problem.counts = random_counts(random, kind == OpKind::alltoall ? p * p : p);
    if (i == 1) std::ranges::fill(problem.counts, 7u);
    if (i == 2) std::ranges::fill(problem.counts, 0u);
    if (i == 3) {
      std::ranges::fill(problem.counts, 0u);
      problem.counts[p / 2] = 43;
    }
    problem.count_elems = p == 1 || kind == OpKind::reducescatter ? total(problem.counts) : 0;
    if (p == 1 && kind == OpKind::alltoall) problem.count_elems += 3;  // rows that no split names
    problems.push_back(problem);
  }
  return problems;
}

void check_kind(OpKind kind) {
  constexpr uint64_t kSeed = 20240607;
  Random random(kSeed);
  Tally tally;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != kind) continue;
    size_t checked = 0;
    for (size_t p = 1; p <= 17; ++p) {
      for (Problem& problem : problems_of(kind, p, random)) {
        for (const DType dtype : {DType::float32, DType::bfloat16}) {
          problem.dtype = dtype;
          for (const size_t chunk : {size_t{5}, size_t{0}, size_t{20}}) {
            Surroundings surroundings;
            surroundings.window_bytes = kWindowBytes;
            surroundings.inline_bytes = 48;
            surroundings.chunk_elems = chunk;
            if (!algorithm.fits(problem, surroundings)) continue;
            CheckOptions options;
            options.window_bytes = kWindowBytes;
            options.seed = random.next();
            const bool one_way = random.below(2) == 0;
            for (const bool in_place : {false, true}) {
              options.in_place = in_place;
              options.buffered = in_place == one_way;
              ASSERT_NO_FATAL_FAILURE(expect_sound(algorithm, problem, surroundings, options, tally));
            }
            ++checked;
          }
        }
      }
    }
    EXPECT_GE(checked, 6u) << algorithm.name;
  }
  std::cout << "checked " << name_of(kind) << ": " << tally.operations << " operations, " << tally.schedules
            << " schedules, " << tally.steps << " steps, " << tally.messages << " messages (seed " << kSeed << ")\n";
}

TEST(Schedules, AllreduceIsSoundForEveryAlgorithmSizeAndCount) { check_kind(OpKind::allreduce); }
TEST(Schedules, ReducescatterIsSoundForEveryAlgorithmSizeAndCount) { check_kind(OpKind::reducescatter); }
TEST(Schedules, AllgatherIsSoundForEveryAlgorithmSizeAndCount) { check_kind(OpKind::allgather); }
TEST(Schedules, BroadcastIsSoundForEveryAlgorithmSizeAndRoot) { check_kind(OpKind::broadcast); }
TEST(Schedules, AlltoallIsSoundForEveryAlgorithmSizeAndCount) { check_kind(OpKind::alltoall); }
TEST(Schedules, BarrierIsSoundForEveryAlgorithmAndSize) { check_kind(OpKind::barrier); }

TEST(Schedules, ThoseWithFewMessagesAreSoundForAThousandMembers) {
  Tally tally;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name != "recursive_doubling" && algorithm.name != "halving_doubling" &&
        algorithm.name != "binomial" && algorithm.name != "dissemination") {
      continue;
    }
    Problem problem;
    problem.kind = algorithm.kind;
    problem.member_count = 1000;
    problem.count_elems = algorithm.name == "halving_doubling" ? 520 : 3;
    problem.root = algorithm.kind == OpKind::broadcast ? 77 : 0;
    ASSERT_NO_FATAL_FAILURE(expect_sound(algorithm, problem, {}, {}, tally));
  }
  std::cout << "checked " << tally.schedules << " schedules, " << tally.steps << " steps with 1000 members\n";
}

// Members that are ahead already write into windows and send messages of the next operation.
TEST(Schedules, OperationsOfOneLaneDoNotDisturbEachOther) {
  constexpr uint64_t kSeeds = 150;
  Random random(7);
  Tally tally;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const size_t sizes[] = {2, 3, 4, 5, 8};
    const size_t p = sizes[seed % 5];
    std::vector<CheckedOperation> operations;
    std::string what = text("seed ", seed, ", p = ", p, ':');
    while (operations.size() < 2 + seed % 4) {
      const Algorithm& algorithm = algorithms()[random.below(algorithms().size())];
      std::vector<Problem> problems = problems_of(algorithm.kind, p, random);
      Problem problem = problems[random.below(problems.size())];
      problem.dtype = std::array{DType::float32, DType::bfloat16, DType::uint8, DType::float64}[random.below(4)];
      Surroundings surroundings;
      surroundings.window_bytes = kWindowBytes;
      surroundings.inline_bytes = 48;
      surroundings.chunk_elems = std::array<size_t, 3>{0, 6, 16}[random.below(3)];
      // Windows are where it can go wrong: three of four operations use them.
      if (!algorithm.needs_windows && random.below(4) != 0) continue;
      if (!algorithm.fits(problem, surroundings)) continue;
      what += text(' ', algorithm.name, '(', problem.count_elems, ' ', name_of(problem.dtype), ')');
      operations.push_back(plan_all(algorithm, problem, surroundings));
    }
    CheckOptions options;
    options.window_bytes = kWindowBytes;
    for (options.seed = seed; options.seed < seed + 6; ++options.seed) {
      options.in_place = options.seed % 2 == 0;
      options.buffered = options.seed % 3 != 0;
      const Result<CheckReport> report = check(operations, options);
      ASSERT_TRUE(report.ok()) << what << ", run " << options.seed << "\n" << report.status().text();
      tally.operations += operations.size();
      tally.steps += report.value().steps;
    }
  }
  std::cout << "checked " << tally.operations << " operations in lanes, " << tally.steps << " steps\n";
}

}  // namespace
}  // namespace halay::collective
