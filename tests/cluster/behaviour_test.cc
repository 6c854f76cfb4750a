// What the engine promises beside right numbers: any order, caching, fusion, groups, process sets, join, joined names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "cluster.h"

namespace halay::test {
namespace {

using ::testing::HasSubstr;

engine::Submission sum_of(engine::Engine& engine, std::string_view name, float& x) {
  return submission(engine, OpKind::allreduce, name, DType::float32, Shape{1}, &x, &x);
}

// A blocking sum of one float.
float sum(engine::Engine& engine, std::string_view name, float x, engine::SetId set = 0) {
  engine::Submission one = sum_of(engine, name, x);
  one.set = set;
  one.flags = engine::kUrgent;
  const Outcome outcome = run_one(engine, one);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.text();
  return x;
}

class Behaviour : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, Behaviour, ::testing::Values("inproc", "shm", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(Behaviour, R7_MatchesTensorsByNameWhateverTheOrderOfSubmission) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    float a = static_cast<float>(rank + 1), b = a;
    engine::Submission submissions[] = {sum_of(engine, "a", a), sum_of(engine, "b", b)};
    engine::Handle handles[2];
    for (int k = 0; k < 2; ++k) {
      const int i = rank == 0 ? k : 1 - k;
      ASSERT_TRUE(engine.submit(std::span(&submissions[i], 1), &handles[i]).ok());
    }
    EXPECT_TRUE(finish(engine, handles[0]).status.ok());
    EXPECT_TRUE(finish(engine, handles[1]).status.ok());
    EXPECT_EQ(a, 3.0F);
    EXPECT_EQ(b, 3.0F);
  });
}

TEST_P(Behaviour, RepeatedStepsSendNoNamesAndFuseAsBefore) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> tensors(20 * 100);
    uint64_t requests = 0, batches = 0, first_batches = 0;
    for (int step = 0; step < 6; ++step) {
      std::vector<engine::Submission> group;
      for (size_t t = 0; t < 20; ++t) {
        group.push_back(submission(engine, OpKind::allreduce, text("gradient ", t), DType::float32, Shape{100},
                                   &tensors[t * 100], &tensors[t * 100]));
      }
      std::ranges::fill(tensors, static_cast<float>(rank));
      std::vector<engine::Handle> handles(group.size());
      ASSERT_TRUE(engine.submit(group, handles.data()).ok());
      for (const engine::Handle handle : handles) ASSERT_TRUE(finish(engine, handle).status.ok());
      EXPECT_EQ(tensors[77], 3.0F);
      const uint64_t new_batches = counter(engine, "batches") - batches;
      if (step == 0) first_batches = new_batches;
      EXPECT_EQ(new_batches, first_batches);
      if (step > 0) {
        EXPECT_EQ(counter(engine, "requests_sent"), requests) << "step " << step << " sent names";
      }
      requests = counter(engine, "requests_sent");
      batches = counter(engine, "batches");
    }
    EXPECT_EQ(first_batches, 1U);
    if (rank > 0) {
      EXPECT_EQ(requests, 20U);
      EXPECT_EQ(counter(engine, "repeats_sent"), 100U);
    }
  });
}

TEST_P(Behaviour, SinglySubmittedTensorsOfARepeatedStepTravelAsNumbersToo) {
  Cluster cluster({2, GetParam(), {"HALAY_CYCLE_TIME=1000"}});
  cluster.run([&](int, engine::Engine& engine) {
    std::vector<float> tensors(30);
    uint64_t requests = 0, batches = 0, pieces = 0;
    for (int step = 0; step < 8; ++step) {
      std::vector<engine::Handle> handles(tensors.size());
      for (size_t t = 0; t < tensors.size(); ++t) {
        engine::Submission one = sum_of(engine, text("t", t), tensors[t]);
        ASSERT_TRUE(engine.submit(std::span(&one, 1), &handles[t]).ok());
      }
      for (const engine::Handle handle : handles) ASSERT_TRUE(finish(engine, handle).status.ok());
      if (step >= 1) {
        EXPECT_EQ(counter(engine, "requests_sent"), requests);
      }
      // What comes together has been learnt by then: waits may have cut the first steps into some bursts, later steps
      // have no more pieces than these (bursts that happen to be ready together share a list).
      const uint64_t new_batches = counter(engine, "batches") - batches;
      if (step < 4) {
        pieces = std::max(pieces, new_batches);
      } else {
        EXPECT_LE(new_batches, pieces);
      }
      requests = counter(engine, "requests_sent");
      batches = counter(engine, "batches");
    }
  });
}

TEST_P(Behaviour, AGroupIsDecidedOnlyWhenAllItsTensorsAreThereOnAllRanks) {
  Cluster cluster({2, GetParam(), {}});
  std::atomic<bool> second_submitted{false};
  cluster.run([&](int rank, engine::Engine& engine) {
    float x = 1, y = 2;
    engine::Submission group[] = {sum_of(engine, "x", x), sum_of(engine, "y", y)};
    engine::Handle handles[2];
    if (rank == 0) {
      ASSERT_TRUE(engine.submit(group, handles).ok());
      EXPECT_EQ(engine.wait(handles[0], 50).code(), Code::timeout);
      EXPECT_FALSE(second_submitted.load());
      second_submitted = true;
    } else {
      while (!second_submitted) std::this_thread::yield();
      ASSERT_TRUE(engine.submit(group, handles).ok());
    }
    for (const engine::Handle handle : handles) ASSERT_TRUE(finish(engine, handle).status.ok());
    EXPECT_EQ(x, 2.0F);
    EXPECT_EQ(y, 4.0F);
  });
}

TEST_P(Behaviour, ThreeOverlappingProcessSetsRunTenThousandOperationsEachInRandomOrder) {
  Cluster cluster({3, GetParam(), {}});
  constexpr int kOperations = 10'000;
  cluster.run([&](int rank, engine::Engine& engine) {
    // Sets {0,1}, {1,2}, {2,0}; each rank is in two of them, and makes them in the order that all agree on.
    std::vector<engine::SetId> mine;
    std::vector<float> totals;
    const std::vector<std::vector<int32_t>> all{{0, 1}, {1, 2}, {2, 0}};
    for (const auto& ranks : all) {
      if (std::ranges::find(ranks, rank) == ranks.end()) continue;
      const auto created = engine.create_set(ranks);
      ASSERT_TRUE(created.ok()) << created.status().text();
      mine.push_back(created.value());
      totals.push_back(static_cast<float>(ranks[0] + ranks[1]));
    }
    std::mt19937 random(static_cast<unsigned>(rank) * 7919U + 17U);
    std::vector<int> left(mine.size(), kOperations);
    struct Flight {
      engine::Handle handle;
      std::unique_ptr<float> x;
      float expected;
    };
    std::vector<Flight> flights;
    while (left[0] + left[1] + static_cast<int>(flights.size()) > 0) {
      const bool can_submit = left[0] + left[1] > 0;
      if (can_submit && (flights.empty() || random() % 2 == 0)) {
        size_t s = random() % 2;
        if (left[s] == 0) s = 1 - s;
        // Sixteen names a set, used again in order: the n-th use of a name meets the n-th use elsewhere.
        auto x = std::make_unique<float>(static_cast<float>(rank));
        engine::Submission one = sum_of(engine, text("s", totals[s], ".", left[s] % 16), *x);
        one.set = mine[s];
        one.flags = engine::kRepeatable;
        engine::Handle handle = 0;
        ASSERT_TRUE(engine.submit(std::span(&one, 1), &handle).ok());
        flights.push_back({handle, std::move(x), totals[s]});
        --left[s];
        continue;
      }
      // Who still has something to submit does not wait for long: the others may be waiting for that.
      const size_t f = random() % flights.size();
      const Status status = engine.wait(flights[f].handle, can_submit ? 0 : 60'000);
      if (can_submit && status.code() == Code::timeout) continue;
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_EQ(*flights[f].x, flights[f].expected);
      engine.release(flights[f].handle);
      std::swap(flights[f], flights.back());
      flights.pop_back();
    }
    for (const engine::SetId set : mine) EXPECT_TRUE(engine.destroy_set(set).ok());
  });
}

TEST_P(Behaviour, SetsWithTheSameMembersAreDistinctAndOneOutlivesTheOther) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    const std::vector<int32_t> ranks{0, 1};
    const auto first = engine.create_set(ranks), second = engine.create_set(ranks);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_NE(first.value(), second.value());
    EXPECT_EQ(sum(engine, "x", static_cast<float>(rank + 1), first.value()), 3.0F);
    ASSERT_TRUE(engine.destroy_set(first.value()).ok());
    EXPECT_EQ(sum(engine, "x", static_cast<float>(rank + 1), second.value()), 3.0F);
    float x = 0;
    engine::Submission late = sum_of(engine, "x", x);
    late.set = first.value();
    EXPECT_EQ(run_one(engine, late).status.code(), Code::not_a_member);
  });
}

TEST_P(Behaviour, ANonMemberIsRefusedAtOnceAndTheMembersGoOn) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    const std::vector<int32_t> ranks{1, 2};
    const auto created = engine.create_set(ranks);
    if (rank == 0) {
      EXPECT_EQ(created.status().code(), Code::not_a_member);
      return;
    }
    ASSERT_TRUE(created.ok());
    EXPECT_EQ(sum(engine, "x", static_cast<float>(rank), created.value()), 3.0F);
  });
}

TEST_P(Behaviour, AJoinedRankIsSkippedAndTheLastOneIsNamed) {
  Cluster cluster({3, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    // Rank r has r+1 steps; a minimum would be wrong if joined ranks counted as zero.
    for (int step = 0; step <= rank; ++step) {
      float x = static_cast<float>(10 + rank);
      engine::Submission one = sum_of(engine, text("step ", step), x);
      one.request.reduce_op = ReduceOp::min;
      ASSERT_TRUE(run_one(engine, one).status.ok());
      EXPECT_EQ(x, static_cast<float>(10 + step));
    }
    const auto joined = engine.join();
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(engine.wait(joined.value(), 60'000).ok());
    ASSERT_TRUE(engine
                    .with_done(joined.value(),
                               [](engine::Operation& operation) -> Status {
                                 EXPECT_EQ(operation.result.last_joined, 2);
                                 return {};
                               })
                    .ok());
    engine.release(joined.value());
    // Everybody takes part again.
    EXPECT_EQ(sum(engine, "after", 1), 3.0F);
  });
}

TEST_P(Behaviour, AverageDividesByTheSetOrByTheActiveRanksAsAsked) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    const auto average = [&](std::string_view name, Divisor divisor) {
      float x = 1;
      engine::Submission one = sum_of(engine, name, x);
      one.request.reduce_op = ReduceOp::average;
      one.request.divisor = divisor;
      EXPECT_TRUE(run_one(engine, one).status.ok());
      return x;
    };
    EXPECT_EQ(average("both", Divisor::world), 1.0F);
    if (rank == 0) {
      EXPECT_EQ(average("alone, world", Divisor::world), 0.5F);
      EXPECT_EQ(average("alone, active", Divisor::active), 1.0F);
    }
    const auto joined = engine.join();
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(engine.wait(joined.value(), 60'000).ok());
    engine.release(joined.value());
  });
}

TEST_P(Behaviour, SeveralThreadsOfOneRankWaitAtOnce) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) right += sum(engine, text("thread ", t), static_cast<float>(rank + 1)) == 3.0F;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right.load(), 1200);
  });
}

TEST_P(Behaviour, ARepeatableNameQueuesBehindItself) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    std::vector<float> values(50);
    std::vector<engine::Handle> handles(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i) + static_cast<float>(rank);
      engine::Submission one = sum_of(engine, "again", values[i]);
      one.flags = engine::kRepeatable;
      ASSERT_TRUE(engine.submit(std::span(&one, 1), &handles[i]).ok());
    }
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(finish(engine, handles[i]).status.ok());
      EXPECT_EQ(values[i], 2 * static_cast<float>(i) + 1);
    }
  });
}

TEST_P(Behaviour, NextCompletedReportsEveryHandleOnce) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    engine::Handle buffer[8];
    EXPECT_EQ(engine.next_completed(buffer, 0).status().code(), Code::timeout);
    std::vector<float> values(40, static_cast<float>(rank));
    std::vector<engine::Handle> handles(values.size()), seen;
    for (size_t i = 0; i < values.size(); ++i) {
      engine::Submission one = sum_of(engine, text("n", i), values[i]);
      ASSERT_TRUE(engine.submit(std::span(&one, 1), &handles[i]).ok());
    }
    while (seen.size() < handles.size()) {
      const auto count = engine.next_completed(buffer, 10'000);
      ASSERT_TRUE(count.ok()) << count.status().text();
      seen.insert(seen.end(), buffer, buffer + count.value());
    }
    std::ranges::sort(handles);
    std::ranges::sort(seen);
    EXPECT_EQ(seen, handles);
    for (const engine::Handle handle : handles) engine.release(handle);
    EXPECT_EQ(counter(engine, "handles_open"), 0U);
  });
}

TEST_P(Behaviour, AnAsynchronousOperationCompletesThoughNobodyWaits) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int, engine::Engine& engine) {
    float x = 1;
    engine::Submission one = sum_of(engine, "alone", x);
    engine::Handle handle = 0;
    ASSERT_TRUE(engine.submit(std::span(&one, 1), &handle).ok());
    // Only the table is asked, so that the engine thread does the work.
    const auto done = [&] { return engine.with_done(handle, [](engine::Operation&) { return Status(); }).ok(); };
    const Time deadline = system_clock().now().plus_ms(10'000);
    while (!done() && system_clock().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(done());
    EXPECT_EQ(x, 2.0F);
    engine.release(handle);
  });
}

TEST_P(Behaviour, TheWorldCanBeBuiltAgainAfterShutdown) {
  if (GetParam() == "inproc") GTEST_SKIP() << "a hub is for one world";
  for (int round = 0; round < 3; ++round) {
    Cluster cluster({2, GetParam(), {}});
    cluster.run([&](int rank, engine::Engine& engine) { EXPECT_EQ(sum(engine, "x", static_cast<float>(rank)), 1.0F); });
  }
}

TEST_P(Behaviour, TheTimelineShowsWhatRan) {
  const std::string path = ::testing::TempDir() + "halay_timeline_" + GetParam() + ".json";
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    ASSERT_TRUE(engine.start_timeline(path, true).ok());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sum(engine, "a \"quoted\" name", static_cast<float>(rank)), 1.0F);
    ASSERT_TRUE(engine.stop_timeline().ok());
    if (rank == 0) {
      EXPECT_EQ(engine.start_timeline("/no/such/folder/x.json", false).code(), Code::invalid_argument);
    }
  });
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_THAT(content.str(), HasSubstr("NEGOTIATE_ALLREDUCE"));
  EXPECT_THAT(content.str(), HasSubstr("a \\\"quoted\\\" name"));
  std::remove(path.c_str());
}

TEST_P(Behaviour, AnIdleEngineNeverWakes) {
  Cluster cluster({2, GetParam(), {}});
  cluster.run([&](int rank, engine::Engine& engine) {
    sum(engine, "x", static_cast<float>(rank));
    sum(engine, "y", static_cast<float>(rank));
  });
  // No clock: what moves the engine is counted, and only heartbeats (every few seconds) may.
  const uint64_t before = counter(cluster.engine(0), "sleeps");
  const Time until = system_clock().now().plus_ms(300);
  while (system_clock().now() < until) std::this_thread::yield();
  EXPECT_LE(counter(cluster.engine(0), "sleeps") - before, 3U);
}

}  // namespace
}  // namespace halay::test
