#include "execute/plan_cache.h"

#include <gtest/gtest.h>

namespace halay::execute {
namespace {

collective::Problem allreduce(size_t count_elems, int member_count = 4, int me = 1) {
  collective::Problem problem;
  problem.kind = OpKind::allreduce;
  problem.member_count = member_count;
  problem.me = me;
  problem.count_elems = count_elems;
  return problem;
}

TEST(PlanCache, PlansOnceForEqualProblems) {
  PlanCache cache(8);
  const auto first = cache.get(allreduce(1000), {}, 0);
  const auto second = cache.get(allreduce(1000), {}, 0);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first.value().get(), second.value().get());
  EXPECT_EQ(cache.made(), 1u);
  EXPECT_EQ(cache.reused(), 1u);
}

TEST(PlanCache, TellsProblemsApartByEachOfTheirParts) {
  PlanCache cache(64);
  const collective::Problem base = allreduce(1000);
  std::vector<collective::Problem> others(6, base);
  others[0].count_elems = 1001;
  others[1].me = 2;
  others[2].member_count = 5;
  others[3].dtype = DType::bfloat16;
  others[4].reduce_op = ReduceOp::max;
  others[5].kind = OpKind::broadcast;
  ASSERT_TRUE(cache.get(base, {}, 0).ok());
  for (const collective::Problem& other : others) ASSERT_TRUE(cache.get(other, {}, 0).ok());
  collective::Problem gather = base;
  gather.kind = OpKind::allgather;
  gather.counts = {1, 2, 3, 4};
  ASSERT_TRUE(cache.get(gather, {}, 0).ok());
  gather.counts = {1, 2, 4, 3};
  ASSERT_TRUE(cache.get(gather, {}, 0).ok());
  ASSERT_TRUE(cache.get(base, {}, 1).ok());
  EXPECT_EQ(cache.made(), 10u);
  EXPECT_EQ(cache.reused(), 0u);
}

TEST(PlanCache, ForgetsTheLeastRecentlyUsedAndKeepsARunningPlanAlive) {
  PlanCache cache(2);
  const auto running = cache.get(allreduce(1), {}, 0);
  ASSERT_TRUE(running.ok());
  const std::shared_ptr<const Plan> plan = running.value();
  ASSERT_TRUE(cache.get(allreduce(2), {}, 0).ok());
  ASSERT_TRUE(cache.get(allreduce(1), {}, 0).ok());  // used again: 2 is the oldest now
  ASSERT_TRUE(cache.get(allreduce(3), {}, 0).ok());
  EXPECT_EQ(cache.size(), 2u);
  ASSERT_TRUE(cache.get(allreduce(1), {}, 0).ok());
  EXPECT_EQ(cache.made(), 3u);
  ASSERT_TRUE(cache.get(allreduce(2), {}, 0).ok());
  EXPECT_EQ(cache.made(), 4u);
  ASSERT_TRUE(cache.get(allreduce(4), {}, 0).ok());
  EXPECT_FALSE(plan->schedule.steps.empty());
}

TEST(PlanCache, DoesNotKeepAProblemThatCannotBePlanned) {
  PlanCache cache(8);
  collective::Surroundings surroundings;
  surroundings.force_algorithm = "no such algorithm";
  const auto plan = cache.get(allreduce(10), surroundings, 0);
  EXPECT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), Code::unsupported);
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace halay::execute
