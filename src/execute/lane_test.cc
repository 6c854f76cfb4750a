// What happens between operations: order, overlap, the tiny path, members that joined, deadlines and the end of the
// world.
#include "execute/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execute/world_for_test.h"

namespace halay::execute {
namespace {

using testing::HasSubstr;

OpSpec allreduce(std::vector<size_t> tensors, int32_t size, DType dtype = DType::float32) {
  OpSpec spec;
  spec.dtype = dtype;
  spec.tensors = std::move(tensors);
  spec.lane_ranks = all_ranks(size);
  return spec;
}

OpSpec no_data(OpKind kind, int32_t size) {
  OpSpec spec;
  spec.kind = kind;
  spec.lane_ranks = all_ranks(size);
  return spec;
}

std::vector<uint64_t> ids_of(const std::vector<Finished>& finished) {
  std::vector<uint64_t> ids;
  for (const Finished& each : finished) ids.push_back(each.id);
  return ids;
}

TEST(Lane, FinishesBatchesInTheirOrder) {
  TestWorld world(3);
  world.add_lane(1, true);
  std::vector<std::unique_ptr<TestOp>> ops;
  for (uint64_t id = 1; id <= 30; ++id) {
    ops.push_back(std::make_unique<TestOp>(allreduce({id % 3 == 0 ? size_t{20000} : id}, 3), id, id));
    ops.back()->submit(world, 1);
  }
  world.run();
  std::vector<uint64_t> in_order(30);
  std::iota(in_order.begin(), in_order.end(), 1);
  for (int32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ids_of(world.finished(rank)), in_order);
  for (const auto& op : ops) op->check(true);
}

TEST(Lane, CostsOthersNothingWhileItWaits) {
  TestWorld world(2);
  for (const uint64_t lane : {1, 2}) world.add_lane(lane, false);
  TestOp first(allreduce({5000}, 2), 1, 1);
  TestOp second(allreduce({5000}, 2), 2, 2);
  // The two ranks begin in opposite order: rank 1 has only lane 2 yet, rank 0 only lane 1.
  first.submit(world, 1, 0);
  second.submit(world, 2, 1);
  world.run();
  EXPECT_TRUE(world.finished(0).empty());
  second.submit(world, 2, 0);
  world.run();
  EXPECT_EQ(ids_of(world.finished(0)), std::vector<uint64_t>{2});
  first.submit(world, 1, 1);
  world.run();
  EXPECT_EQ(ids_of(world.finished(0)), (std::vector<uint64_t>{2, 1}));
  first.check(true);
  second.check(true);
}

TEST(Lane, GivesOthersTheirTurnDuringALongBatch) {
  TestWorld world(1);
  for (const uint64_t lane : {1, 2}) world.add_lane(lane, false);
  TestOp longer(allreduce({size_t{2} << 20}, 1), 1, 1), other(allreduce({1}, 1), 2, 2);
  longer.submit(world, 1);
  other.submit(world, 2);
  world.step(0, {});
  EXPECT_EQ(ids_of(world.finished(0)), std::vector<uint64_t>{2});
  world.run();
  EXPECT_EQ(ids_of(world.finished(0)), (std::vector<uint64_t>{2, 1}));
}

TEST(Lane, TellsTheTimelineWhatItDoes) {
  TestWorld world(2);
  world.add_lane(1, false);
  TestOp op(allreduce({3000, 5}, 2), 7, 1);
  op.submit(world, 1);
  world.run();
  const std::string events = world.timeline(0).recent();
  for (const char* tensor : {"op7/t0", "op7/t1"}) EXPECT_THAT(events, HasSubstr(tensor));
  for (const char* what : {"MEMCPY_IN_FUSION_BUFFER", "SHM_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER"}) {
    EXPECT_THAT(events, HasSubstr(what)) << events;
  }
}

TEST(Lane, ThatOverlapOnARankProgressSideBySide) {
  TestWorld world(3);
  const std::vector<std::vector<int32_t>> sets = {{0, 1}, {1, 2}, {0, 2}};
  for (uint64_t lane = 0; lane < 3; ++lane) world.add_lane(lane, sets[lane], lane != 1);
  std::vector<std::unique_ptr<TestOp>> ops;
  std::mt19937_64 random(4);
  for (uint64_t i = 0; i < 300; ++i) {
    OpSpec spec = allreduce({1 + random() % 4000}, 2);
    spec.lane_ranks = sets[i % 3];
    ops.push_back(std::make_unique<TestOp>(spec, i, random()));
  }
  // Rank r begins with the lane r, and each has an order of its own.
  for (int32_t rank = 0; rank < 3; ++rank) {
    for (uint64_t turn = 0; turn < 3; ++turn) {
      const uint64_t lane = (turn + static_cast<uint64_t>(rank)) % 3;
      const auto me = std::ranges::find(sets[lane], rank);
      if (me == sets[lane].end()) continue;
      for (uint64_t i = lane; i < 300; i += 3) ops[i]->submit(world, lane, static_cast<int>(me - sets[lane].begin()));
    }
  }
  world.run_threads();
  EXPECT_TRUE(world.idle());
  for (const auto& op : ops) op->check(true);
}

TEST(TinyPath, GivesTheBitsOfTheSchedule) {
  for (const int32_t size : {1, 2, 3, 5, 8}) {
    for (const DType dtype :
         {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::float64, DType::bool8}) {
      OpSpec spec = allreduce({1, 0, 4, 2}, size, dtype);
      spec.scale = dtype == DType::bool8 ? math::Scale{} : math::Scale{0.3, 1.1, size};
      TestWorld world(size);
      world.add_lane(1, true);   // tiny
      world.add_lane(2, false);  // messages
      TestOp tiny(spec, 1, 77), schedule(spec, 2, 77);
      tiny.submit(world, 1);
      schedule.submit(world, 2);
      world.run();
      EXPECT_EQ(world.executor(0).counters().tiny, 1u);
      tiny.check(true);
      EXPECT_TRUE(tiny.outputs(0) == schedule.outputs(0)) << tiny.words();
    }
  }
}

TEST(TinyPath, TakesWhatFitsOneLineAndNoMore) {
  TestWorld world(2);
  world.add_lane(1, true);
  TestOp fits(allreduce({kTinyPayloadBytes / 4}, 2), 1, 1), larger(allreduce({kTinyPayloadBytes / 4 + 1}, 2), 2, 2);
  fits.submit(world, 1);
  larger.submit(world, 1);
  world.run();
  EXPECT_EQ(world.executor(0).counters().tiny, 1u);
  fits.check(true);
  larger.check(true);
}

TEST(TinyPath, WritesNoOutputBeforeAllAreThere) {
  TestWorld world(2);
  world.add_lane(1, true);
  OpSpec spec = allreduce({3}, 2);
  spec.in_place = true;
  TestOp op(spec, 1, 5);
  const auto before = op.outputs(0);
  op.submit(world, 1, 0);
  world.run();
  EXPECT_TRUE(op.outputs(0) == before);
  op.submit(world, 1, 1);
  world.run();
  op.check(true);
}

TEST(TinyPath, TellsTheFabricThatItWrote) {
  TestWorld world(2);
  world.add_lane(1, true);
  TestOp op(allreduce({1}, 2), 1, 5);
  op.submit(world, 1);
  world.run();
  EXPECT_GE(world.fake().fabric(0).announced, 1u);
  EXPECT_GE(world.fake().fabric(1).announced, 1u);
}

TEST(TinyPath, IsABarrierToo) {
  TestWorld world(3);
  world.add_lane(1, true);
  TestOp barrier(no_data(OpKind::barrier, 3), 1, 1);
  barrier.submit(world, 1, 0);
  barrier.submit(world, 1, 2);
  world.run();
  EXPECT_TRUE(world.finished(0).empty());
  barrier.submit(world, 1, 1);
  world.run();
  for (int32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(world.finished(rank).size(), 1u);
}

TEST(Barrier, HoldsAllBackByMessagesToo) {
  TestWorld world(5);
  world.add_lane(1, false);
  TestOp barrier(no_data(OpKind::barrier, 5), 1, 1);
  for (int member = 0; member < 4; ++member) barrier.submit(world, 1, member);
  world.run();
  for (int32_t rank = 0; rank < 5; ++rank) EXPECT_TRUE(world.finished(rank).empty());
  barrier.submit(world, 1, 4);
  world.run();
  for (int32_t rank = 0; rank < 5; ++rank) EXPECT_EQ(world.finished(rank).size(), 1u);
}

TEST(Joined, MembersAreSkippedAndComeBackAfterTheJoin) {
  for (const bool threads : {false, true}) {
    for (const bool windows : {true, false}) {
      TestWorld world(4);
      world.add_lane(1, windows);
      std::vector<std::unique_ptr<TestOp>> ops;
      const auto submit = [&](OpSpec spec) {
        ops.push_back(std::make_unique<TestOp>(std::move(spec), ops.size() + 1, ops.size()));
        ops.back()->submit(world, 1);
      };
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (const size_t elems : {size_t{2}, size_t{40000}, size_t{3}}) submit(allreduce({elems}, 4));
        for (const std::vector<int>& members :
             {std::vector<int>{0, 1, 3}, std::vector<int>{1, 3}, std::vector<int>{3}}) {
          for (const size_t elems : {size_t{2}, size_t{9000}, size_t{5}}) {
            OpSpec spec = allreduce({elems}, 4);
            spec.members = members;
            submit(spec);
          }
        }
        OpSpec join = no_data(OpKind::join, 4);
        join.members = {3};  // whoever the control plane names: a join is a barrier of all
        submit(join);
      }
      if (threads) {
        world.run_threads();
      } else {
        world.run();
      }
      for (int32_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(world.finished(rank).size(), ops.size()) << world.executor(rank).describe();
      }
      for (const auto& op : ops) op->check(true);
    }
  }
}

TEST(Joined, MembersFinishAtOnce) {
  TestWorld world(3);
  world.add_lane(1, true);
  OpSpec spec = allreduce({1000}, 3);
  spec.members = {0, 2};
  TestOp op(spec, 1, 1);
  op.submit(world, 1, 1);
  world.run();
  EXPECT_EQ(world.finished(1).size(), 1u);
  EXPECT_EQ(world.executor(1).counters().batches, 0u);
  op.submit(world, 1, 0);
  op.submit(world, 1, 2);
  world.run();
  op.check(true);
}

TEST(Join, WaitsForAllAlthoughTheyHadJoined) {
  TestWorld world(2);
  world.add_lane(1, true);
  TestOp join(no_data(OpKind::join, 2), 1, 1);
  join.submit(world, 1, 0);
  world.run();
  EXPECT_TRUE(world.finished(0).empty());
  join.submit(world, 1, 1);
  world.run();
  EXPECT_EQ(world.finished(0).size(), 1u);
}

class OverdueBatch : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Lanes, OverdueBatch, testing::Bool(),
                         [](const auto& info) { return info.param ? "WithWindows" : "ByMessages"; });

TEST_P(OverdueBatch, EndsTheWorldAndNamesTensorLaneAndPeer) {
  ExecutorOptions options;
  options.op_deadline_ms = 5000;
  TestWorld world(3, {}, options);
  world.add_lane(1, GetParam());
  TestOp op(allreduce({1000, 7}, 3), 1, 1);
  for (const int member : {0, 1}) op.submit(world, 1, member);
  const Time start{1'000'000};
  world.run(start);
  EXPECT_EQ(world.executor(0).next_deadline(), start.plus_ms(5000));
  EXPECT_EQ(world.executor(2).next_deadline(), Time::never());
  world.run(start.plus_ms(4999));
  EXPECT_TRUE(world.finished(0).empty());
  world.run(start.plus_ms(5000));
  ASSERT_EQ(world.finished(0).size(), 1u);
  const Status& status = world.finished(0)[0].status;
  EXPECT_EQ(status.code(), Code::aborted);
  EXPECT_EQ(world.executor(0).status().code(), Code::aborted);
  EXPECT_THAT(status.text(), HasSubstr("op1/t0"));
  EXPECT_THAT(status.text(), HasSubstr("set 1"));
  EXPECT_THAT(status.text(), HasSubstr("waits for rank"));
  EXPECT_THAT(status.text(), HasSubstr("5 s"));
  EXPECT_TRUE(world.executor(0).idle());
}

TEST(Overdue, IsTheTinyPathToo) {
  ExecutorOptions options;
  options.op_deadline_ms = 1500;
  TestWorld world(2, {}, options);
  world.add_lane(1, true);
  TestOp op(allreduce({1}, 2), 1, 1);
  op.submit(world, 1, 0);
  world.run(Time{0});
  world.run(Time{0}.plus_ms(1500));
  ASSERT_EQ(world.finished(0).size(), 1u);
  EXPECT_EQ(world.finished(0)[0].status.culprit(), 1);
  EXPECT_THAT(world.finished(0)[0].status.text(), HasSubstr("1.5 s; rank 0 waits for rank 1"));
}

TEST(Deadline, CountsFromTheBeginningOfTheBatchNotOfTheQueue) {
  ExecutorOptions options;
  options.op_deadline_ms = 1000;
  TestWorld world(2, {}, options);
  world.add_lane(1, true);
  TestOp first(allreduce({1}, 2), 1, 1), second(allreduce({1}, 2), 2, 2);
  first.submit(world, 1, 0);
  second.submit(world, 1, 0);
  world.run(Time{0});
  first.submit(world, 1, 1);
  world.run(Time{0}.plus_ms(900));
  EXPECT_EQ(world.finished(0).size(), 1u);
  world.run(Time{0}.plus_ms(1500));
  EXPECT_TRUE(world.executor(0).status().ok());
  second.submit(world, 1, 1);
  world.run(Time{0}.plus_ms(1800));
  EXPECT_EQ(world.finished(0).size(), 2u);
  second.check(true);
}

TEST(Describe, SaysWhatRunsAndWhomItWaitsFor) {
  TestWorld world(2);
  world.add_lane(1, false);
  EXPECT_EQ(world.executor(0).describe(), "");
  TestOp op(allreduce({1000, 5}, 2), 3, 1), behind(allreduce({4}, 2), 4, 1);
  op.submit(world, 1, 0);
  behind.submit(world, 1, 0);
  world.run();
  const std::string words = world.executor(0).describe();
  EXPECT_THAT(words, HasSubstr("allreduce of op3/t0 and 1 more in set 1"));
  EXPECT_THAT(words, HasSubstr("waits for rank 1"));
  EXPECT_THAT(words, HasSubstr("1 more batch"));
  op.submit(world, 1, 1);
  behind.submit(world, 1, 1);
  world.run();
  EXPECT_EQ(world.executor(0).describe(), "");
}

TEST(Abandon, EndsAllThatIsQueuedAndTouchesNoMemoryAfterwards) {
  for (const bool windows : {true, false}) {
    TestWorld world(2);
    world.add_lane(1, windows);
    OpSpec spec = allreduce({5000}, 2);
    spec.in_place = true;
    auto running = std::make_unique<TestOp>(spec, 1, 1);
    TestOp queued(allreduce({4}, 2), 2, 2);
    running->submit(world, 1, 0);
    queued.submit(world, 1, 0);
    world.run();
    const auto before = running->outputs(0);
    world.executor(0).abandon(Status::aborted("rank 1 said so"));
    EXPECT_TRUE(world.executor(0).idle());
    running->submit(world, 1, 1);
    world.run();
    ASSERT_EQ(ids_of(world.finished(0)), (std::vector<uint64_t>{1, 2}));
    for (const Finished& finished : world.finished(0)) EXPECT_EQ(finished.status.text(), "rank 1 said so");
    EXPECT_TRUE(running->outputs(0) == before);
    EXPECT_EQ(world.executor(0).next_deadline(), Time::never());
    // What comes later ends alike.
    TestOp later(allreduce({4}, 2), 3, 3);
    later.submit(world, 1, 0);
    world.run();
    ASSERT_EQ(world.finished(0).size(), 3u);
    EXPECT_EQ(world.finished(0)[2].status.code(), Code::aborted);
    world.executor(1).abandon(Status::aborted("over"));  // before its buffers go
  }
}

TEST(LostPeer, EndsWhatNeedsItAfterWhatItHadSent) {
  TestWorld world(2);
  world.add_lane(1, false);
  TestOp first(allreduce({1000}, 2), 1, 1), second(allreduce({1000}, 2), 2, 2);
  first.submit(world, 1, 1);
  while (world.step(1, {})) {
  }
  world.fake().kill(1);
  first.submit(world, 1, 0);
  second.submit(world, 1, 0);
  for (int i = 0; i < 100; ++i) world.step(0, {});
  ASSERT_EQ(ids_of(world.finished(0)), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(world.finished(0)[1].status.code(), Code::peer_lost);
  EXPECT_EQ(world.finished(0)[1].status.culprit(), 1);
  EXPECT_EQ(world.executor(0).status().code(), Code::peer_lost);
  world.executor(1).abandon(Status::aborted("over"));
}

TEST(Lane, CanBeRemovedAndMadeAgain) {
  TestWorld world(2);
  for (int round = 0; round < 3; ++round) {
    world.add_lane(1, false);
    TestOp op(allreduce({100}, 2), 1, 1);
    op.submit(world, 1);
    EXPECT_FALSE(world.executor(0).lane_idle(1));
    world.run();
    op.check(true);
    for (int32_t rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(world.executor(rank).lane_idle(1));
      world.executor(rank).remove_lane(1);
    }
  }
}

}  // namespace
}  // namespace halay::execute
