#include "execute/surroundings.h"

#include <gtest/gtest.h>

#include "execute/fake_fabric_for_test.h"

namespace halay::execute {
namespace {

TEST(DemandedAlgorithm, IsReadByKind) {
  const std::string_view demands = "allreduce=ring,broadcast=binomial";
  EXPECT_EQ(demanded_algorithm(demands, OpKind::allreduce), "ring");
  EXPECT_EQ(demanded_algorithm(demands, OpKind::broadcast), "binomial");
  EXPECT_EQ(demanded_algorithm(demands, OpKind::allgather), "");
}

TEST(DemandedAlgorithm, IsForAllreduceWithoutAKind) {
  EXPECT_EQ(demanded_algorithm("ring", OpKind::allreduce), "ring");
  EXPECT_EQ(demanded_algorithm("ring", OpKind::broadcast), "");
  EXPECT_EQ(demanded_algorithm("", OpKind::allreduce), "");
  EXPECT_EQ(demanded_algorithm(",,", OpKind::allreduce), "");
}

TEST(LaneSurroundings, GiveAScheduleHalfOfTheWindowsAndNoneWhileAMemberHasJoined) {
  FakeWorld world(2);
  const LaneSurroundings surroundings(world.fabric(0), {7, {0, 1}, 0, true, "set"}, {});
  EXPECT_EQ(surroundings.of(OpKind::allreduce, true).window_bytes, world.options().window_bytes / 2);
  EXPECT_EQ(surroundings.of(OpKind::allreduce, false).window_bytes, 0u);
  EXPECT_EQ(surroundings.of(OpKind::allreduce, false).inline_bytes, 0u);
  // The same bits, whether somebody has joined or not.
  EXPECT_TRUE(surroundings.of(OpKind::allreduce, true).reproducible);
  EXPECT_TRUE(surroundings.of(OpKind::allreduce, false).reproducible);
  EXPECT_NE(surroundings.id(true), surroundings.id(false));
}

TEST(LaneSurroundings, PriceALaneByItsSlowestLinks) {
  FakeOptions two_machines;
  two_machines.machines = {0, 0, 1};
  FakeWorld world(3, two_machines);
  const LaneSurroundings near(world.fabric(0), {7, {0, 1}, 0, false, "near"}, {});
  const LaneSurroundings far(world.fabric(0), {8, {0, 1, 2}, 0, false, "far"}, {});
  EXPECT_TRUE(near.shared_memory());
  EXPECT_FALSE(far.shared_memory());
  EXPECT_LT(near.of(OpKind::allreduce, false).link.alpha, far.of(OpKind::allreduce, false).link.alpha);
  EXPECT_NE(near.id(false), far.id(false));
  EXPECT_TRUE(near.of(OpKind::allreduce, false).reproducible);
  EXPECT_FALSE(far.of(OpKind::allreduce, false).reproducible);
}

TEST(LaneSurroundings, LeaveTheTinyPathToThePlannerWhereAnAlgorithmIsDemanded) {
  FakeWorld world(2);
  ExecutorOptions options;
  options.force_allreduce_algorithm = "recursive_doubling";
  const LaneSurroundings surroundings(world.fabric(0), {7, {0, 1}, 0, true, "set"}, options);
  EXPECT_FALSE(surroundings.tiny_allowed(OpKind::allreduce));
  EXPECT_TRUE(surroundings.tiny_allowed(OpKind::barrier));
}

}  // namespace
}  // namespace halay::execute
