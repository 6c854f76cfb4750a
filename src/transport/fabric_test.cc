#include "transport/fabric.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <tuple>

#include "transport/world_for_test.h"
#include "types/schedule.h"

namespace halay::transport {
namespace {

using Parameters = std::tuple<std::string, size_t>;

class FabricTest : public testing::TestWithParam<Parameters> {
 protected:
  void SetUp() override {
    for (size_t rank = 0; rank < size(); ++rank) ASSERT_TRUE(world.fabrics[rank]) << world.statuses[rank].text();
  }
  size_t size() const { return std::get<1>(GetParam()); }
  std::string transport() const { return std::get<0>(GetParam()); }
  TestWorld world = connect_world(transport(), size());
};

std::string name_of_case(const testing::TestParamInfo<Parameters>& info) {
  return std::get<0>(info.param) + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(All, FabricTest,
                         testing::Combine(testing::Values("inproc", "shm", "tcp", "auto"),
                                          testing::Values(1u, 2u, 3u, 4u)),
                         name_of_case);

struct Move {
  std::vector<std::byte> bytes;
  Transfer transfer;
};

TEST_P(FabricTest, KnowsWhoIsWhereAndOverWhat) {
  for (size_t rank = 0; rank < size(); ++rank) {
    EXPECT_EQ(world[rank].rank(), static_cast<int32_t>(rank));
    EXPECT_EQ(world[rank].size(), static_cast<int32_t>(size()));
    for (size_t other = 0; other < size(); ++other) {
      EXPECT_EQ(world[rank].machine_of(static_cast<int32_t>(other)), 0);
      Channel* channel = world[rank].channel(static_cast<int32_t>(other));
      ASSERT_EQ(channel == nullptr, rank == other);
      if (!channel) continue;
      EXPECT_EQ(channel->peer_rank(), static_cast<int32_t>(other));
      EXPECT_EQ(channel->pipe().transport(), transport() == "auto" ? "shm" : transport());
    }
  }
}

TEST_P(FabricTest, MovesAllToAllInEverySize) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{88}, size_t{113}, size_t{4096}, size_t{300'001}, size_t{5} << 20}) {
    std::vector<std::vector<Move>> sends(size()), receives(size());
    for (size_t rank = 0; rank < size(); ++rank) {
      sends[rank].resize(size());
      receives[rank].resize(size());
      for (size_t other = 0; other < size(); ++other) {
        if (rank == other) continue;
        Channel& channel = *world[rank].channel(static_cast<int32_t>(other));
        receives[rank][other].bytes.resize(bytes);
        channel.post_recv(1, receives[rank][other].bytes, &receives[rank][other].transfer);
        sends[rank][other].bytes = test_bytes(bytes, rank * 10 + other);
        channel.post_send(1, sends[rank][other].bytes, &sends[rank][other].transfer);
      }
    }
    const auto done = [&] {
      for (size_t rank = 0; rank < size(); ++rank) {
        for (size_t other = 0; other < size(); ++other) {
          if (rank != other && !(sends[rank][other].transfer.done && receives[rank][other].transfer.done)) return false;
        }
      }
      return true;
    };
    ASSERT_TRUE(world.drive(done)) << bytes;
    for (size_t rank = 0; rank < size(); ++rank) {
      for (size_t other = 0; other < size(); ++other) {
        if (rank == other) continue;
        ASSERT_EQ(receives[rank][other].bytes, sends[other][rank].bytes);
      }
    }
  }
}

TEST_P(FabricTest, LanesInOppositeOrderDoNotBlockEachOther) {
  if (size() < 2) return;
  const size_t bytes = 2 << 20;  // more than any ring holds
  Move a0, a1, b0, b1;
  a0.bytes = test_bytes(bytes, 1), a1.bytes = test_bytes(bytes, 2);
  b0.bytes.resize(bytes), b1.bytes.resize(bytes);
  Channel &zero = *world[0].channel(1), &one = *world[1].channel(0);
  zero.post_send(1, a0.bytes, &a0.transfer);
  zero.post_send(2, a1.bytes, &a1.transfer);
  one.post_recv(2, b1.bytes, &b1.transfer);  // lane 1 is asked for only when lane 2 is through
  ASSERT_TRUE(world.drive([&] { return b1.transfer.done; }));
  EXPECT_FALSE(b0.transfer.done);
  one.post_recv(1, b0.bytes, &b0.transfer);
  ASSERT_TRUE(world.drive([&] { return b0.transfer.done && a0.transfer.done && a1.transfer.done; }));
  EXPECT_EQ(b0.bytes, a0.bytes);
  EXPECT_EQ(b1.bytes, a1.bytes);
  EXPECT_EQ(one.counters().unexpected_bytes, bytes);
}

TEST_P(FabricTest, FramesArriveInOrderAmongData) {
  if (size() < 2) return;
  Move data;
  data.bytes = test_bytes(1 << 20, 1);
  Move into;
  into.bytes.resize(data.bytes.size());
  world[1].channel(0)->post_recv(1, into.bytes, &into.transfer);
  for (int i = 0; i < 500; ++i) {
    if (i == 250) world[0].channel(1)->post_send(1, data.bytes, &data.transfer);
    const uint32_t number = static_cast<uint32_t>(i);
    world[0].channel(1)->send_frame(FrameKind::control, 8, std::as_bytes(std::span(&number, 1)));
  }
  ASSERT_TRUE(world.drive([&] { return world.sinks[1]->frames.size() == 500 && into.transfer.done; }));
  for (size_t i = 0; i < 500; ++i) {
    uint32_t number = 0;
    std::memcpy(&number, world.sinks[1]->frames[i].payload.data(), sizeof number);
    EXPECT_EQ(number, i);
  }
  EXPECT_EQ(into.bytes, data.bytes);
}

TEST_P(FabricTest, AGoodbyeComesBeforeTheEndAndIsNoDeath) {
  if (size() < 2) return;
  world[0].channel(1)->send_frame(FrameKind::goodbye, 0, bytes_of("done"));
  world.fabrics[0].reset();
  ASSERT_TRUE(world.drive([&] { return !world[1].channel(0)->status().ok(); }));
  ASSERT_EQ(world.sinks[1]->frames.size(), 1u);
  EXPECT_EQ(world.sinks[1]->frames[0].kind, FrameKind::goodbye);
  EXPECT_EQ(world.sinks[1]->frames[0].payload, "done");
  EXPECT_TRUE(world[1].status().ok());
}

TEST_P(FabricTest, AnEndWithoutAGoodbyeIsADeathForAllOthers) {
  if (size() < 2) return;
  const size_t dead = size() - 1;
  world.fabrics[dead].reset();
  ASSERT_TRUE(world.drive([&] {
    for (size_t rank = 0; rank < dead; ++rank) {
      if (world[rank].status().ok()) return false;
    }
    return true;
  }));
  for (size_t rank = 0; rank < dead; ++rank) {
    EXPECT_EQ(world[rank].status().code(), Code::peer_lost);
    EXPECT_EQ(world[rank].status().culprit(), static_cast<int32_t>(dead));
    EXPECT_NE(world[rank].status().text().find("died: its connection closed without a goodbye"), std::string::npos);
  }
}

std::atomic<uint64_t>& flag_of(const WindowView& view, size_t index) {
  return *reinterpret_cast<std::atomic<uint64_t>*>(static_cast<std::byte*>(view.flags) + index * 128);
}

TEST_P(FabricTest, WindowsAreSeenByAllMembersWhereMemoryIsShared) {
  std::vector<int32_t> ranks;
  for (size_t rank = 0; rank < size(); ++rank) ranks.push_back(static_cast<int32_t>(rank));
  const bool shared = transport() != "tcp" || size() == 1;
  for (uint64_t lane : {uint64_t{3}, uint64_t{4}}) {
    for (size_t rank = 0; rank < size(); ++rank) {
      EXPECT_EQ(world[rank].windows_possible(ranks), shared);
      EXPECT_EQ(world[rank].open_windows(lane, ranks).code(), shared ? Code::ok : Code::unsupported);
    }
  }
  if (!shared) return;
  ASSERT_TRUE(world.drive([&] {
    for (size_t rank = 0; rank < size(); ++rank) {
      if (!world[rank].windows_ready(3) || !world[rank].windows_ready(4)) return false;
    }
    return true;
  }));
  for (size_t rank = 0; rank < size(); ++rank) {
    const WindowView mine = world[rank].window(3, static_cast<int32_t>(rank));
    std::memset(mine.data, static_cast<int>(rank) + 1, world[rank].window_bytes());
    mine.lines[0] = std::byte{9};
    flag_of(mine, kFlagCount - 1).store(rank + 1, std::memory_order_release);
  }
  for (size_t reader = 0; reader < size(); ++reader) {
    for (size_t rank = 0; rank < size(); ++rank) {
      const WindowView seen = world[reader].window(3, static_cast<int32_t>(rank));
      EXPECT_EQ(flag_of(seen, kFlagCount - 1).load(std::memory_order_acquire), rank + 1);
      EXPECT_EQ(seen.data[0], static_cast<std::byte>(rank + 1));
      EXPECT_EQ(seen.data[world[reader].window_bytes() - 1], static_cast<std::byte>(rank + 1));
      EXPECT_EQ(seen.lines[0], std::byte{9});
      EXPECT_EQ(world[reader].window(4, static_cast<int32_t>(rank)).lines[0], std::byte{0});  // a set's own
    }
  }
  for (size_t rank = 0; rank < size(); ++rank) {
    world[rank].close_windows(3);
    EXPECT_FALSE(world[rank].windows_ready(3));
    EXPECT_TRUE(world[rank].windows_ready(4));
  }
}

TEST_P(FabricTest, AfterAbandonNothingOfOthersIsTouched) {
  if (size() < 2 || transport() == "inproc" || transport() == "tcp") return;
  const std::vector<int32_t> ranks = {0, 1};
  ASSERT_TRUE(world[0].open_windows(1, ranks).ok());
  ASSERT_TRUE(world[1].open_windows(1, ranks).ok());
  ASSERT_TRUE(world.drive([&] { return world[0].windows_ready(1) && world[1].windows_ready(1); }));
  const WindowView mine = world[0].window(1, 0), seen = world[1].window(1, 0);
  mine.data[0] = std::byte{1};
  world[0].channel(1)->send_frame(FrameKind::abort, 0, bytes_of("why"));
  world[0].abandon();
  mine.data[0] = std::byte{2};
  world[0].channel(1)->send_frame(FrameKind::control, 0, bytes_of("too late"));
  EXPECT_EQ(seen.data[0], std::byte{1});
  EXPECT_EQ(world[0].window(1, 0).data, mine.data);
  world[1].progress(*world.sinks[1], system_clock().now());
  ASSERT_EQ(world.sinks[1]->frames.size(), 1u);
  EXPECT_EQ(world.sinks[1]->frames[0].payload, "why");
}

TEST_P(FabricTest, WakeEndsAWaitFromAnotherThread) {
  ASSERT_TRUE(world.drive([&] { return world[0].prepare_wait(); }));
  std::thread other([&] { world[0].wake(); });
  world[0].wait(Time::never());
  other.join();
  world[0].end_wait();
}

TEST_P(FabricTest, AWaitEndsAtItsDeadline) {
  ASSERT_TRUE(world.drive([&] { return world[0].prepare_wait(); }));
  const Time before = system_clock().now();
  world[0].wait(before.plus_ms(20));
  world[0].wait(before.plus_ms(20));  // the first may have woken for what was left from connecting
  EXPECT_GE(system_clock().now(), before.plus_ms(20));
  world[0].end_wait();
}

// Ping-pong in which both sides always sleep. A lost wake-up would end it at the deadline.
void ping_pong(Fabric& fabric, int32_t peer, bool first, int rounds, std::atomic<bool>& lost) {
  KeepingSink sink;
  if (first) fabric.channel(peer)->send_frame(FrameKind::control, 1, bytes_of("ball"));
  const Time end = system_clock().now().plus_ms(50'000);
  for (int got = 0; got < rounds && !lost;) {
    fabric.progress(sink, system_clock().now());
    const size_t frames = sink.frames.size();
    sink.frames.clear();
    for (size_t i = 0; i < frames; ++i, ++got) {
      if (got + 1 < rounds || !first) fabric.channel(peer)->send_frame(FrameKind::control, 1, bytes_of("ball"));
    }
    if (frames > 0) continue;
    if (fabric.prepare_wait()) {
      fabric.wait(end);
      fabric.end_wait();
    }
    if (system_clock().now() >= end) lost = true;
  }
}

TEST_P(FabricTest, NoWakeUpIsLostWhenBothSidesSleep) {
  if (size() < 2) return;
  std::atomic<bool> lost{false};
  std::thread other([&] { ping_pong(world[1], 0, false, 3000, lost); });
  ping_pong(world[0], 1, true, 3000, lost);
  other.join();
  EXPECT_FALSE(lost);
}

TEST_P(FabricTest, AWriterThatSleepsOverAFullRingIsWoken) {
  if (size() < 2) return;
  Move from, to;
  from.bytes = test_bytes(8 << 20, 5);
  to.bytes.resize(from.bytes.size());
  const auto run = [](Fabric& fabric, const Transfer& transfer) {
    KeepingSink sink;
    const Time end = system_clock().now().plus_ms(50'000);
    while (!transfer.done && system_clock().now() < end) {
      if (fabric.progress(sink, system_clock().now()) || transfer.done || !fabric.prepare_wait()) continue;
      fabric.wait(end);
      fabric.end_wait();
    }
  };
  std::thread receiver([&] {
    world[1].channel(0)->post_recv(1, to.bytes, &to.transfer);
    run(world[1], to.transfer);
  });
  world[0].channel(1)->post_send(1, from.bytes, &from.transfer);
  run(world[0], from.transfer);
  receiver.join();
  ASSERT_TRUE(to.transfer.done);
  EXPECT_EQ(to.bytes, from.bytes);
}

TEST_P(FabricTest, AnnounceWakesAMemberThatSleepsOverAFlag) {
  if (size() < 2 || transport() == "tcp") return;
  const std::vector<int32_t> ranks = {0, 1};
  ASSERT_TRUE(world[0].open_windows(1, ranks).ok());
  ASSERT_TRUE(world[1].open_windows(1, ranks).ok());
  ASSERT_TRUE(world.drive([&] { return world[0].windows_ready(1) && world[1].windows_ready(1); }));
  constexpr uint64_t kRounds = 2000;
  std::atomic<bool> lost{false};
  const auto run = [&](size_t me) {
    Fabric& fabric = world[me];
    std::atomic<uint64_t>& mine = flag_of(fabric.window(1, static_cast<int32_t>(me)), 0);
    std::atomic<uint64_t>& theirs = flag_of(fabric.window(1, static_cast<int32_t>(1 - me)), 0);
    const Time end = system_clock().now().plus_ms(50'000);
    for (uint64_t round = 1; round <= kRounds && !lost; ++round) {
      mine.store(round, std::memory_order_release);
      fabric.announce(1);
      while (theirs.load(std::memory_order_acquire) < round && !lost) {
        if (fabric.prepare_wait()) {
          if (theirs.load(std::memory_order_acquire) < round) fabric.wait(end);
          fabric.end_wait();
        }
        if (system_clock().now() >= end) lost = true;
      }
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  EXPECT_FALSE(lost);
}

// One thread drives while another sits in wait(): the sleeper wakes at most a few times for each prepare_wait().
TEST_P(FabricTest, ASleeperIsNotKeptAwakeByWhatAnotherThreadDrains) {
  if (size() < 2) return;
  std::atomic<bool> stop{false};
  std::atomic<int> wakes{0};
  ASSERT_TRUE(world.drive([&] { return world[1].prepare_wait(); }));
  std::thread sleeper([&] {
    while (!stop) {
      world[1].wait(Time::never());
      ++wakes;
    }
  });
  for (int i = 0; i < 1000; ++i) {
    world[0].channel(1)->send_frame(FrameKind::control, 1, bytes_of("x"));
    ASSERT_TRUE(world.drive([&] { return world.sinks[1]->frames.size() == static_cast<size_t>(i) + 1; }));
  }
  EXPECT_LE(wakes.load(), 4);
  stop = true;
  world[1].wake();
  sleeper.join();
  world[1].end_wait();
}

TEST(Fabric, LeavesNoDescriptorAndNoThreadBehind) {
  (void)connect_world("shm", 2);
  const size_t before = open_descriptors();
  for (const char* transport : {"inproc", "shm", "tcp", "auto"}) {
    TestWorld world = connect_world(transport, 3);
    ASSERT_TRUE(world.fabrics[2]) << world.statuses[2].text();
    if (world[0].windows_possible(std::vector<int32_t>{0, 1})) {
      ASSERT_TRUE(world[0].open_windows(1, std::vector<int32_t>{0, 1}).ok());
      ASSERT_TRUE(world[1].open_windows(1, std::vector<int32_t>{0, 1}).ok());
      ASSERT_TRUE(world.drive([&] { return world[0].windows_ready(1) && world[1].windows_ready(1); }));
    }
    world.fabrics.clear();
    EXPECT_EQ(open_descriptors(), before) << transport;
  }
}

}  // namespace
}  // namespace halay::transport
