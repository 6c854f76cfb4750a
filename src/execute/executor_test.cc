// Every kind of operation over every algorithm, against a plain reference: one thread for all ranks in turn, and a
// thread for each.
#include "execute/executor.h"

#include <gtest/gtest.h>

#include "collective/plan.h"
#include "execute/member.h"
#include "execute/world_for_test.h"

namespace halay::execute {
namespace {

constexpr int32_t kSizes[] = {1, 2, 3, 4, 5, 8};
constexpr uint64_t kLane = 42;

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> kAll = {
      DType::uint8, DType::int8,    DType::uint16,   DType::int16,   DType::uint32,  DType::int32, DType::uint64,
      DType::int64, DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::bool8};
  return kAll;
}

// Runs one operation alone in a new world; true if the algorithm could do it.
struct Trial {
  std::string algorithm;  // empty: the planner's choice
  bool windows = true;
  bool exact = true;
};

void expect_ok(TestWorld& world, size_t operations) {
  for (int32_t rank = 0; rank < world.size(); ++rank) {
    ASSERT_EQ(world.finished(rank).size(), operations) << "rank " << rank << ": " << world.executor(rank).describe();
    for (const Finished& finished : world.finished(rank)) EXPECT_TRUE(finished.status.ok()) << finished.status.text();
  }
}

TestOp run_one(int32_t size, OpSpec spec, const Trial& trial, uint64_t seed = 1) {
  ExecutorOptions options;
  if (!trial.algorithm.empty()) {
    options.force_allreduce_algorithm = std::string(name_of(spec.kind)) + "=" + trial.algorithm;
  }
  FakeOptions fake;
  fake.pipe_bytes = 4096;
  TestWorld world(size, fake, options);
  world.add_lane(kLane, trial.windows);
  spec.lane_ranks = all_ranks(size);
  TestOp op(std::move(spec), 1, seed);
  op.submit(world, kLane);
  world.run();
  expect_ok(world, 1);
  op.check(trial.exact);
  return op;
}

// Counts that are unequal, some of them zero.
std::vector<size_t> uneven(size_t cells, size_t about, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<size_t> counts(cells);
  for (size_t& count : counts) count = random() % 4 == 0 ? 0 : random() % (2 * about);
  return counts;
}

OpSpec spec_of(OpKind kind, DType dtype, int32_t size, size_t elems, uint64_t seed) {
  OpSpec spec;
  spec.kind = kind;
  spec.dtype = dtype;
  const auto p = static_cast<size_t>(size);
  switch (kind) {
    case OpKind::allreduce:
    case OpKind::broadcast:
      spec.tensors = {elems};
      spec.root = static_cast<int>(seed % p);
      break;
    case OpKind::allgather:
    case OpKind::reducescatter:
      spec.counts = uneven(p, elems / p + 1, seed);
      break;
    case OpKind::alltoall:
      spec.counts = uneven(p * p, elems / p + 1, seed);
      break;
    default:
      break;
  }
  return spec;
}

TEST(Executor, RunsEveryAlgorithmOnEverySizeWithTheReferencesBits) {
  int trials = 0;
  for (const collective::Algorithm& algorithm : collective::algorithms()) {
    for (const int32_t size : kSizes) {
      for (const size_t elems : {size_t{1}, size_t{13}, size_t{1024}, size_t{70001}}) {
        for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64}) {
          if (elems > 70000 && (dtype != DType::float32 || size > 5)) continue;  // more than a chunk, but not for all
          OpSpec spec = spec_of(algorithm.kind, dtype, size, elems, static_cast<uint64_t>(trials) + 1);
          spec.scale = {1.0, 1.0, algorithm.kind == OpKind::allreduce ? size : 1};
          collective::Problem problem;
          problem.kind = algorithm.kind;
          problem.dtype = dtype;
          problem.member_count = size;
          problem.counts = spec.counts;
          problem.count_elems = std::accumulate(spec.counts.begin(), spec.counts.end(), size_t{0});
          if (spec.counts.empty()) problem.count_elems = spec.tensors.empty() ? 0 : elems;
          collective::Surroundings surroundings;
          surroundings.window_bytes = FakeOptions().window_bytes / 2;
          surroundings.inline_bytes = kTinyPayloadBytes;
          if (!algorithm.fits(problem, surroundings)) continue;
          SCOPED_TRACE(std::string(algorithm.name) + " with " + std::to_string(size) + " members");
          run_one(size, spec, {std::string(algorithm.name), true, algorithm.canonical || dtype == DType::int64});
          ++trials;
        }
      }
    }
  }
  std::printf("%d trials\n", trials);
  EXPECT_GT(trials, 500);
}

TEST(Executor, KnowsEveryDtypeWithAndWithoutWindows) {
  for (const int32_t size : {2, 3, 5}) {
    for (const DType dtype : all_dtypes()) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
        for (const size_t elems : {size_t{5}, size_t{3001}}) {
          OpSpec spec = spec_of(OpKind::allreduce, dtype, size, elems, 3);
          spec.reduce_op = op;
          SCOPED_TRACE(std::to_string(size) + " members");
          const TestOp with_windows = run_one(size, spec, {"", true});
          const TestOp by_messages = run_one(size, spec, {"", false});
          EXPECT_TRUE(with_windows.outputs(0) == by_messages.outputs(0)) << with_windows.words();
        }
      }
    }
  }
}

TEST(Executor, ScalesAndDividesInTheAccumulatorAndRoundsOnce) {
  for (const bool windows : {true, false}) {
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::int32}) {
      for (const size_t elems : {size_t{3}, size_t{5000}}) {
        OpSpec spec = spec_of(OpKind::allreduce, dtype, 3, elems, 5);
        spec.scale = {0.37, 1.7, 3};
        run_one(3, spec, {"", windows});
        spec.in_place = true;
        run_one(3, spec, {"", windows});
      }
    }
  }
}

TEST(Executor, PacksTensorsOfOddSizesAndLeavesInputsAlone) {
  std::mt19937_64 random(11);
  for (const int32_t size : kSizes) {
    for (const bool windows : {true, false}) {
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::uint8}) {
        for (const bool in_place : {true, false}) {
          OpSpec spec;
          spec.dtype = dtype;
          spec.in_place = in_place;
          spec.scale.divisor = size;
          for (int i = 0; i < 40; ++i) spec.tensors.push_back(i % 7 == 0 ? 0 : random() % 2000);
          SCOPED_TRACE(std::to_string(size) + (windows ? " members with windows" : " members"));
          run_one(size, spec, {"", windows});
        }
      }
    }
  }
}

TEST(Executor, GivesTheSameBitsHoweverTensorsAreFused) {
  for (const bool windows : {true, false}) {
    OpSpec together;
    together.dtype = DType::float32;
    together.tensors = {1000, 7, 66000, 1};
    const TestOp fused = run_one(5, together, {"", windows});
    OpSpec whole = together;
    whole.tensors = {67008};
    const TestOp single = run_one(5, whole, {"", !windows});
    std::vector<std::byte> joined;
    for (const auto& part : fused.outputs(0)) joined.insert(joined.end(), part.begin(), part.end());
    EXPECT_TRUE(joined == single.outputs(0)[0]);
  }
}

TEST(Executor, GivesTheSameBitsWhereResultsGoPastTheCache) {
  OpSpec large;
  large.dtype = DType::int64;
  large.tensors = {(size_t{1} << 18) + 3, 1001};  // 2 MiB in and out for 8 members: more than a cache of 32 MiB
  run_one(8, large, {"", true});
}

TEST(Executor, FinishesOperationsWithoutElements) {
  for (const int32_t size : {1, 2, 5}) {
    for (const bool windows : {true, false}) {
      for (const OpKind kind : {OpKind::allreduce, OpKind::broadcast, OpKind::allgather, OpKind::reducescatter,
                                OpKind::alltoall, OpKind::barrier}) {
        OpSpec spec = spec_of(kind, DType::float32, size, 0, 1);
        std::ranges::fill(spec.counts, size_t{0});
        if (kind == OpKind::allreduce) spec.tensors = {0, 0};
        run_one(size, spec, {"", windows});
      }
    }
  }
}

TEST(Executor, RunsAThreadForEachRank) {
  for (const int32_t size : {2, 3, 4, 8}) {
    for (const bool windows : {true, false}) {
      FakeOptions fake;
      fake.window_bytes = 64 * 1024;
      TestWorld world(size, fake);
      world.add_lane(kLane, windows);
      std::vector<std::unique_ptr<TestOp>> ops;
      std::mt19937_64 random(static_cast<uint64_t>(size));
      constexpr OpKind kKinds[] = {OpKind::allreduce, OpKind::allreduce,     OpKind::allreduce, OpKind::broadcast,
                                   OpKind::allgather, OpKind::reducescatter, OpKind::alltoall,  OpKind::barrier};
      for (uint64_t id = 1; id <= 120; ++id) {
        const OpKind kind = kKinds[random() % std::size(kKinds)];
        OpSpec spec = spec_of(kind, random() % 2 == 0 ? DType::float32 : DType::float16, size,
                              random() % 3 == 0 ? 1 + random() % 20 : 1 + random() % 9000, random());
        spec.lane_ranks = all_ranks(size);
        ops.push_back(std::make_unique<TestOp>(std::move(spec), id, random()));
        ops.back()->submit(world, kLane);
      }
      world.run_threads();
      expect_ok(world, ops.size());
      for (const auto& op : ops) op->check(true);
    }
  }
}

TEST(Executor, CountsWhatItDid) {
  TestWorld world(2);
  world.add_lane(kLane, true);
  OpSpec tiny;
  tiny.tensors = {2, 3};
  OpSpec large;
  large.tensors = {5000};
  std::vector<std::unique_ptr<TestOp>> ops;
  for (OpSpec spec : {tiny, large, large, tiny}) {
    spec.lane_ranks = all_ranks(2);
    ops.push_back(std::make_unique<TestOp>(spec, ops.size() + 1, 9));
    ops.back()->submit(world, kLane);
  }
  world.run();
  for (const auto& op : ops) op->check(true);
  const ExecutorCounters& counters = world.executor(0).counters();
  EXPECT_EQ(counters.batches, 4u);
  EXPECT_EQ(counters.tensors, 6u);
  EXPECT_EQ(counters.bytes, 4u * (2 * 5 + 2 * 5000));
  EXPECT_EQ(counters.tiny, 2u);
  EXPECT_EQ(counters.plans_made, 1u);
  EXPECT_EQ(counters.plans_reused, 1u);
}

TEST(Executor, FailsAnOperationAloneWhereTheDemandedAlgorithmDoesNotFit) {
  ExecutorOptions options;
  options.force_allreduce_algorithm = "allreduce=no_such_thing";
  TestWorld world(2, {}, options);
  world.add_lane(kLane, true);
  OpSpec spec;
  spec.tensors = {100};
  spec.lane_ranks = all_ranks(2);
  TestOp op(spec, 1, 1);
  op.submit(world, kLane);
  OpSpec fine = spec_of(OpKind::allgather, DType::int8, 2, 100, 2);
  fine.lane_ranks = all_ranks(2);
  TestOp next(fine, 2, 2);
  next.submit(world, kLane);
  world.run();
  for (int32_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(world.finished(rank).size(), 2u);
    EXPECT_EQ(world.finished(rank)[0].status.code(), Code::unsupported);
    EXPECT_TRUE(world.finished(rank)[1].status.ok());
    EXPECT_TRUE(world.executor(rank).status().ok());
  }
  next.check(true);
}

}  // namespace
}  // namespace halay::execute
