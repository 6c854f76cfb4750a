#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "collective/plan.h"

namespace halay::collective {
namespace {

using testing::HasSubstr;

Problem allreduce_of(int members, size_t count_elems) {
  Problem problem;
  problem.member_count = members;
  problem.count_elems = count_elems;
  return problem;
}

Surroundings one_machine() {
  Surroundings surroundings;
  surroundings.window_bytes = 1 << 20;
  surroundings.inline_bytes = 120;
  surroundings.link = kShmLink;
  return surroundings;
}

std::string chosen(const Problem& problem, const Surroundings& surroundings) {
  const Result<const Algorithm*> algorithm = select(problem, surroundings);
  return algorithm.ok() ? std::string(algorithm.value()->name) : algorithm.status().text();
}

TEST(Select, FollowsTheSizeOnOneMachine) {
  EXPECT_EQ(chosen(allreduce_of(2, 2), one_machine()), "shm_inline");
  EXPECT_EQ(chosen(allreduce_of(2, 1024), one_machine()), "shm_everyone");
  EXPECT_EQ(chosen(allreduce_of(8, 64), one_machine()), "shm_everyone");
  EXPECT_EQ(chosen(allreduce_of(8, 16 << 20), one_machine()), "shm_owner");
}

TEST(Select, FollowsTheSizeBetweenMachines) {
  EXPECT_EQ(chosen(allreduce_of(8, 2), {}), "recursive_doubling");
  EXPECT_NE(chosen(allreduce_of(8, 1 << 20), {}), "recursive_doubling");
}

TEST(Select, HasAnAlgorithmForEveryKindWithAndWithoutWindows) {
  for (const Surroundings& surroundings : {Surroundings{}, one_machine()}) {
    for (int members = 1; members <= 9; ++members) {
      for (const OpKind kind : {OpKind::allreduce, OpKind::reducescatter, OpKind::allgather, OpKind::broadcast,
                                OpKind::alltoall, OpKind::barrier}) {
        for (const size_t count : {size_t{0}, size_t{3}, size_t{1} << 22}) {
          Problem problem = allreduce_of(members, count);
          problem.kind = kind;
          problem.counts.assign(static_cast<size_t>(kind == OpKind::alltoall ? members * members : members), count);
          EXPECT_TRUE(plan(problem, surroundings).ok()) << name_of(kind) << ' ' << members << ' ' << count;
        }
      }
    }
  }
}

TEST(Select, ChoosesTheSameOnAllMembers) {
  for (const Surroundings& surroundings : {Surroundings{}, one_machine()}) {
    for (const size_t count : {size_t{1}, size_t{1000}, size_t{1} << 20}) {
      for (const OpKind kind : {OpKind::allreduce, OpKind::allgather, OpKind::alltoall}) {
        Problem problem = allreduce_of(5, count);
        problem.kind = kind;
        for (size_t i = 0; i < 25; ++i) problem.counts.push_back(i * count);
        if (kind == OpKind::allgather) problem.counts.resize(5);
        const std::string first = chosen(problem, surroundings);
        for (problem.me = 1; problem.me < 5; ++problem.me) {
          // What a member puts in differs where shapes may.
          if (kind != OpKind::allreduce) problem.count_elems = static_cast<size_t>(problem.me) * count;
          EXPECT_EQ(chosen(problem, surroundings), first);
        }
      }
    }
  }
}

TEST(Select, TakesTheForcedOne) {
  Surroundings surroundings = one_machine();
  for (const char* name : {"ring", "direct", "halving_doubling", "recursive_doubling", "shm_owner"}) {
    surroundings.force_algorithm = name;
    EXPECT_EQ(chosen(allreduce_of(3, 1000), surroundings), name);
    EXPECT_EQ(plan(allreduce_of(3, 1000), surroundings).value().algorithm, name);
  }
}

TEST(Select, ListsWhatFitsWhenTheForcedOneDoesNot) {
  Surroundings surroundings;
  surroundings.force_algorithm = "rign";
  const Result<const Algorithm*> unknown = select(allreduce_of(3, 1000), surroundings);
  EXPECT_EQ(unknown.status().code(), Code::unsupported);
  EXPECT_THAT(unknown.status().text(),
              HasSubstr("\"rign\"; those that can are [recursive_doubling, halving_doubling, direct, ring]"));
  surroundings.force_algorithm = "shm_owner";
  EXPECT_THAT(select(allreduce_of(3, 1000), surroundings).status().text(),
              HasSubstr("\"shm_owner\" that can do this here"));
}

TEST(Select, AWorldOfOneHasNothingToForceButNamesMistakes) {
  Surroundings surroundings;
  surroundings.force_algorithm = "ring";
  EXPECT_EQ(chosen(allreduce_of(1, 10), surroundings), "alone");
  surroundings.force_algorithm = "rign";
  EXPECT_EQ(select(allreduce_of(1, 10), surroundings).status().code(), Code::unsupported);
}

TEST(Select, KeepsToTheCanonicalTreeWhereTheOrderShowsAndIsAskedFor) {
  Surroundings surroundings;
  surroundings.reproducible = true;
  surroundings.force_algorithm = "ring";
  Problem problem = allreduce_of(4, 1 << 20);
  EXPECT_FALSE(select(problem, surroundings).ok());
  problem.dtype = DType::int32;  // wraps: any order gives the same bits
  EXPECT_TRUE(select(problem, surroundings).ok());
  problem.kind = OpKind::allgather;
  problem.dtype = DType::float32;
  problem.counts.assign(4, 10);
  EXPECT_TRUE(select(problem, surroundings).ok());
}

TEST(Explain, HasALineForEachAlgorithmOfTheKind) {
  Surroundings surroundings;
  surroundings.reproducible = true;
  const std::string lines = explain(allreduce_of(4, 1000), surroundings);
  EXPECT_THAT(lines, HasSubstr("\n  shm_owner: needs windows, and there are none\n"));
  EXPECT_THAT(lines, HasSubstr("\n  ring: its order of adding depends on the element"));
  EXPECT_THAT(lines, HasSubstr("  alone: does not fit this count or number of members\n"));
  EXPECT_THAT(lines, HasSubstr("* "));
  EXPECT_THAT(lines, HasSubstr(" us expected\n"));
  surroundings.force_algorithm = "direct";
  EXPECT_THAT(explain(allreduce_of(4, 1000), surroundings), HasSubstr("* direct: "));
  EXPECT_THAT(explain(allreduce_of(4, 1000), surroundings), HasSubstr("but direct is forced"));
}

TEST(Table, NamesAreUniqueWithinAKind) {
  for (const Algorithm& one : algorithms()) {
    int same = 0;
    for (const Algorithm& other : algorithms()) same += one.name == other.name && one.kind == other.kind ? 1 : 0;
    EXPECT_EQ(same, 1) << one.name;
  }
}

// A plan is reused by execute, but the first one must not be felt either.
TEST(Plan, IsCheapForALargeTensor) {
  Problem problem = allreduce_of(8, size_t{32} << 20);
  problem.me = 3;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != OpKind::allreduce || !algorithm.fits(problem, one_machine())) continue;
    double best_ms = 1e9;
    size_t steps = 0;
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      steps = algorithm.plan(problem, one_machine()).steps.size();
      best_ms = std::min(best_ms,
                         std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    std::cout << "planned 128 MiB for 8 members by " << algorithm.name << ": " << steps << " steps in " << best_ms
              << " ms\n";
    EXPECT_LT(best_ms, 100) << algorithm.name;
  }
}

}  // namespace
}  // namespace halay::collective
