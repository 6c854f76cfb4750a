// What goes wrong, and how it is told: mismatches, duplicates, stalls, deaths, early ends, aborts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/text.h"
#include "cluster.h"

namespace halay::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Outcome sum(engine::Engine& engine, std::string_view name, std::vector<float>& x) {
  return run_one(engine, submission(engine, OpKind::allreduce, name, DType::float32,
                                    Shape{static_cast<int64_t>(x.size())}, x.data(), x.data()));
}

void expect_usable(engine::Engine& engine, int size) {
  std::vector<float> x{1};
  EXPECT_TRUE(sum(engine, "usable", x).status.ok());
  EXPECT_EQ(x[0], static_cast<float>(size));
}

class Failure : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, Failure, ::testing::Values("inproc", "shm", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(Failure, R14_AShapeMismatchIsToldToAllRanksAndTheEngineStaysUsable) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x(static_cast<size_t>(rank) + 2);
    const Outcome outcome = sum(engine, "w", x);
    EXPECT_EQ(outcome.status.code(), Code::mismatch);
    EXPECT_THAT(outcome.status.text(),
                AllOf(HasSubstr("w"), HasSubstr("(2,)"), HasSubstr("(3,)"), HasSubstr("rank 0"), HasSubstr("rank 1")));
    expect_usable(engine, 2);
  });
}

TEST_P(Failure, ADtypeMismatchNamesBothTypes) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<double> room(4);
    const DType dtype = rank == 2 ? DType::float64 : DType::float32;
    const Outcome outcome =
        run_one(engine, submission(engine, OpKind::allreduce, "w", dtype, Shape{4}, room.data(), room.data()));
    EXPECT_EQ(outcome.status.code(), Code::mismatch);
    EXPECT_THAT(outcome.status.text(), AllOf(HasSubstr("float32"), HasSubstr("float64"), HasSubstr("rank 2")));
    expect_usable(engine, 3);
  });
}

TEST_P(Failure, R13_ADuplicateNameIsRefusedOnItsRankAndNothingIsLost) {
  Cluster cluster({2, GetParam(), {}});
  std::atomic<bool> refused{false};
  cluster.run([&](int rank, engine::Engine& engine) {
    float x = 1, y = 1;
    if (rank == 1) {
      while (!refused) std::this_thread::yield();
    }
    engine::Submission one = submission(engine, OpKind::allreduce, "twice", DType::float32, Shape{1}, &x, &x);
    engine::Handle handle = 0, none = 0;
    ASSERT_TRUE(engine.submit(std::span(&one, 1), &handle).ok());
    if (rank == 0) {
      engine::Submission again = submission(engine, OpKind::allreduce, "twice", DType::float32, Shape{1}, &y, &y);
      const Status status = engine.submit(std::span(&again, 1), &none);
      EXPECT_EQ(status.code(), Code::duplicate_name);
      EXPECT_THAT(status.text(), HasSubstr("twice"));
      refused = true;
    }
    EXPECT_TRUE(finish(engine, handle).status.ok());
    EXPECT_EQ(x, 2.0F);
    expect_usable(engine, 2);
  });
}

TEST_P(Failure, R6_ANameThatOnlyOneRankSubmitsStallsWithAVerdictThatNamesTheMissing) {
  Cluster cluster({2, GetParam(), {"HALAY_OP_DEADLINE_SECONDS=0.5"}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    const Outcome outcome = sum(engine, text("x", rank), x);
    EXPECT_EQ(outcome.status.code(), Code::stalled);
    EXPECT_THAT(outcome.status.text(), AllOf(HasSubstr(text("x", rank)), HasSubstr(text("rank ", 1 - rank).substr(5))));
    expect_usable(engine, 2);
  });
}

TEST_P(Failure, R9_TheDeathOfARankIsToldToAllOthersWithItsNumber) {
  Cluster cluster({4, GetParam(), {}});
  std::atomic<int> ready{0};
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    ASSERT_TRUE(sum(engine, "before", x).status.ok());
    if (rank == 2) {
      while (ready < 3) std::this_thread::yield();
      engine.vanish();
      return;
    }
    engine::Submission one =
        submission(engine, OpKind::allreduce, "after", DType::float32, Shape{1}, x.data(), x.data());
    engine::Handle handle = 0;
    ASSERT_TRUE(engine.submit(std::span(&one, 1), &handle).ok());
    ++ready;
    const Outcome outcome = finish(engine, handle);
    EXPECT_EQ(outcome.status.code(), Code::peer_lost) << outcome.status.text();
    EXPECT_EQ(outcome.status.culprit(), 2);
    EXPECT_THAT(outcome.status.text(), HasSubstr("rank 2"));
    // And what comes later fails at once.
    EXPECT_EQ(sum(engine, "later", x).status.code(), Code::peer_lost);
  });
}

TEST_P(Failure, R19_ARankThatEndsEarlyIsToldApartFromOneThatDied) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    ASSERT_TRUE(sum(engine, "step 1", x).status.ok());
    if (rank == 1) {
      EXPECT_TRUE(engine.shutdown().ok());
      return;
    }
    const Outcome outcome = sum(engine, "step 2", x);
    EXPECT_EQ(outcome.status.code(), Code::peer_lost);
    EXPECT_EQ(outcome.status.culprit(), 1);
    EXPECT_THAT(outcome.status.text(), HasSubstr("rank 1 finished normally after 1 operations"));
  });
}

TEST_P(Failure, TheLeastRankEndingEarlyIsToldTooAlthoughItDecides) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    ASSERT_TRUE(sum(engine, "step 1", x).status.ok());
    if (rank == 0) {
      EXPECT_TRUE(engine.shutdown().ok());
      return;
    }
    const Outcome outcome = sum(engine, "step 2", x);
    EXPECT_EQ(outcome.status.culprit(), 0);
    EXPECT_THAT(outcome.status.text(), HasSubstr("rank 0 finished normally"));
  });
}

TEST_P(Failure, EndingAtTheSameTimeLosesNothing) {
  for (int round = 0; round < 20; ++round) {
    Cluster cluster({3, GetParam(), {}});
    cluster.run([&](int, engine::Engine& engine) {
      std::vector<float> x(3000, 1);
      const Outcome outcome = sum(engine, "last", x);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
      EXPECT_EQ(x[2999], 3.0F);
      EXPECT_TRUE(engine.shutdown().ok());
    });
  }
}

TEST_P(Failure, AnAbortEndsTheWorldEverywhereWithItsReason) {
  Cluster cluster({3, GetParam(), {}});
  std::atomic<int> ready{0};
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    ASSERT_TRUE(sum(engine, "before", x).status.ok());
    ++ready;
    if (rank == 1) {
      while (ready < 3) std::this_thread::yield();
      EXPECT_TRUE(engine.abort("the loss is not a number").ok());
      return;
    }
    const Outcome outcome = sum(engine, "after", x);
    EXPECT_EQ(outcome.status.code(), Code::aborted);
    EXPECT_THAT(outcome.status.text(), AllOf(HasSubstr("rank 1"), HasSubstr("the loss is not a number")));
  });
}

size_t times(std::string_view words, std::string_view in) {
  size_t count = 0;
  for (size_t at = in.find(words); at != std::string_view::npos; at = in.find(words, at + 1)) ++count;
  return count;
}

TEST_P(Failure, HoweverTheNewsTravelsItNamesWhoFoundTheReasonOnce) {
  for (int round = 0; round < 20; ++round) {
    Cluster cluster({5, GetParam(), {}});
    std::atomic<int> ready{0};
    cluster.run([&](int rank, engine::Engine& engine) {
      std::vector<float> x{1};
      ASSERT_TRUE(sum(engine, "before", x).status.ok());
      ++ready;
      if (rank == 1) {
        while (ready < 5) std::this_thread::yield();
        EXPECT_TRUE(engine.abort("enough").ok());
        return;
      }
      const std::string told = sum(engine, "after", x).status.text();
      EXPECT_EQ(times("ended the world", told), 1U) << told;
      EXPECT_THAT(told, HasSubstr("rank 1 ended the world: enough"));
    });
  }
}

TEST_P(Failure, AnAbortTakesNoStepFromSlowerRanks) {
  for (int round = 0; round < 20; ++round) {
    Cluster cluster({3, GetParam(), {}});
    cluster.run([&](int rank, engine::Engine& engine) {
      std::vector<float> x{1};
      const Outcome outcome = sum(engine, "before", x);
      EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
      if (rank == 1) {
        EXPECT_TRUE(engine.abort("enough").ok());
      }
    });
  }
}

TEST_P(Failure, AMissingMemberOfAProcessSetIsNamedAtTheStartTimeout) {
  Cluster cluster({3, GetParam(), {"HALAY_START_TIMEOUT=2"}});
  cluster.run([&](int rank, engine::Engine& engine) {
    if (rank < 2) {
      const std::vector<int32_t> ranks{0, 1, 2};
      const auto created = engine.create_set(ranks);
      EXPECT_EQ(created.status().code(), Code::timeout);
      EXPECT_THAT(created.status().text(), HasSubstr("rank(s) [2]"));
    }
  });
}

TEST_P(Failure, WaitsEndAtTheirOwnTimeoutAndTheOperationLivesOn) {
  Cluster cluster({2, GetParam(), {}});
  std::atomic<bool> go{false};
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> x{1};
    if (rank == 1) {
      while (!go) std::this_thread::yield();
      EXPECT_TRUE(sum(engine, "slow", x).status.ok());
      return;
    }
    engine::Submission one =
        submission(engine, OpKind::allreduce, "slow", DType::float32, Shape{1}, x.data(), x.data());
    engine::Handle handle = 0;
    ASSERT_TRUE(engine.submit(std::span(&one, 1), &handle).ok());
    const Status status = engine.wait(handle, 30);
    EXPECT_EQ(status.code(), Code::timeout);
    EXPECT_THAT(status.text(), HasSubstr("slow"));
    go = true;
    EXPECT_TRUE(finish(engine, handle).status.ok());
  });
}

TEST(Misuse, IsAnsweredBeforeInitAndAfterShutdown) {
  engine::Engine engine({});
  float x = 0;
  engine::Submission one = submission(engine, OpKind::allreduce, "x", DType::float32, Shape{1}, &x, &x);
  EXPECT_EQ(run_one(engine, one).status.code(), Code::not_initialized);
  EXPECT_EQ(engine.world_info().status().code(), Code::not_initialized);
  ASSERT_TRUE(engine.start_from_environment().ok());
  EXPECT_TRUE(run_one(engine, one).status.ok());
  ASSERT_TRUE(engine.shutdown().ok());
  EXPECT_EQ(run_one(engine, one).status.code(), Code::not_initialized);
  ASSERT_TRUE(engine.start_from_environment().ok());
  EXPECT_TRUE(run_one(engine, one).status.ok());
}

TEST(Misuse, OfArgumentsIsNamed) {
  engine::Engine engine({});
  ASSERT_TRUE(engine.start_from_environment().ok());
  float x = 0;
  engine::Submission one = submission(engine, OpKind::broadcast, "x", DType::float32, Shape{1}, &x, &x);
  one.request.root = 7;
  EXPECT_THAT(run_one(engine, one).status.text(), HasSubstr("root rank 7"));
  one = submission(engine, OpKind::allgather, "x", DType::float32, Shape{}, &x, nullptr);
  EXPECT_THAT(run_one(engine, one).status.text(), HasSubstr("at least one dimension"));
  one = submission(engine, OpKind::alltoall, "x", DType::float32, Shape{1}, &x, nullptr);
  one.request.splits = {2};
  EXPECT_THAT(run_one(engine, one).status.text(), HasSubstr("2"));
  one = submission(engine, OpKind::allreduce, "x", DType::bool8, Shape{1}, &x, &x);
  one.request.reduce_op = ReduceOp::average;
  EXPECT_EQ(run_one(engine, one).status.code(), Code::invalid_argument);
  EXPECT_EQ(engine.wait(12345, 0).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace halay::test
