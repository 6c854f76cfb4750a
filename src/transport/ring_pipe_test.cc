#include "transport/ring_pipe.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <vector>

#include "region/segment.h"
#include "transport/pair.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

constexpr size_t kRingBytes = 4096;

struct Ends {
  std::shared_ptr<region::Segment> memory =
      std::make_shared<region::Segment>(region::Segment::create("halay-test", pair_bytes_for(kRingBytes)).value());
  std::shared_ptr<const region::Doorbell> bells[2] = {bell(), bell()};
  std::unique_ptr<RingPipe> pipes[2] = {pipe(0), pipe(1)};

  static std::shared_ptr<const region::Doorbell> bell() {
    return std::make_shared<const region::Doorbell>(region::Doorbell::create().value());
  }
  std::unique_ptr<RingPipe> pipe(int side) {
    return std::make_unique<RingPipe>(
        RingPipe::Parts{"shm", memory, memory->data(), kRingBytes, side, bells[1 - side]});
  }
  bool rang(int side) {
    pollfd one{bells[side]->descriptor(), POLLIN, 0};
    const bool heard = ::poll(&one, 1, 0) == 1;
    bells[side]->quiet();
    return heard;
  }
  size_t write(int side, size_t count) {
    const auto bytes = test_bytes(count, 1);
    const std::span<const std::byte> part = bytes;
    return pipes[side]->write({&part, 1});
  }
  size_t read(int side, size_t count) {
    std::vector<std::byte> into(count);
    return pipes[side]->read(into);
  }
};

TEST(RingPipe, CarriesBytesBothWays) {
  Ends ends;
  EXPECT_EQ(ends.write(0, 100), 100u);
  EXPECT_EQ(ends.write(1, 50), 50u);
  EXPECT_EQ(ends.read(1, 200), 100u);
  EXPECT_EQ(ends.read(0, 200), 50u);
}

TEST(RingPipe, RingsOnlyWhoSleepsAndOnlyOnce) {
  Ends ends;
  ends.write(0, 10);
  ends.pipes[0]->ring();
  EXPECT_FALSE(ends.rang(1));  // awake
  ends.pipes[1]->sleep(false);
  ends.pipes[0]->ring();
  EXPECT_FALSE(ends.rang(1));  // nothing new was written
  ends.write(0, 10);
  ends.pipes[0]->ring();
  EXPECT_TRUE(ends.rang(1));
  ends.write(0, 10);
  ends.pipes[0]->ring();
  EXPECT_FALSE(ends.rang(1));  // it has been rung already
}

TEST(RingPipe, AReaderRingsAWriterOnlyIfItWaitsForRoom) {
  Ends ends;
  EXPECT_EQ(ends.write(0, 2 * kRingBytes), kRingBytes);
  ends.pipes[0]->sleep(false);
  ends.read(1, 100);
  ends.pipes[1]->ring();
  EXPECT_FALSE(ends.rang(0));
  ends.pipes[0]->sleep(true);
  ends.read(1, 100);
  ends.pipes[1]->ring();
  EXPECT_TRUE(ends.rang(0));
}

TEST(RingPipe, SeesWhatCameBeforeItSleeps) {
  Ends ends;
  EXPECT_FALSE(ends.pipes[1]->something_came(false));
  ends.write(0, 2 * kRingBytes);
  EXPECT_TRUE(ends.pipes[1]->something_came(false));
  EXPECT_FALSE(ends.pipes[0]->something_came(true));
  ends.read(1, 3 * kRingBytes);
  EXPECT_TRUE(ends.pipes[0]->something_came(true));
  EXPECT_FALSE(ends.pipes[0]->something_came(false));
}

TEST(RingPipe, EndsAfterWhatWasWrittenBeforeAndWakesWhoSleeps) {
  for (bool in_good_order : {true, false}) {
    Ends ends;
    ends.write(0, 10);
    if (in_good_order) {
      ends.pipes[0].reset();
      EXPECT_TRUE(ends.rang(1));
      EXPECT_TRUE(ends.pipes[1]->something_came(false));
    } else {
      ends.pipes[1]->peer_gone();
    }
    EXPECT_FALSE(ends.pipes[1]->ended());
    EXPECT_EQ(ends.read(1, 20), 10u);
    EXPECT_TRUE(ends.pipes[1]->ended());
  }
}

TEST(RingPipe, TouchesNothingOnceItIsAbandoned) {
  Ends ends;
  ends.write(1, 10);
  ends.pipes[1]->sleep(true);
  ends.pipes[0]->abandon();
  EXPECT_EQ(ends.write(0, 10), 0u);
  EXPECT_EQ(ends.read(0, 10), 0u);
  ends.pipes[0]->ring_for_data();
  ends.pipes[0].reset();
  EXPECT_FALSE(ends.rang(1));
  EXPECT_FALSE(ends.pipes[1]->ended());
}

TEST(RingBytes, FallWithTheNumberOfRanksAndKeepToTheBudget) {
  EXPECT_EQ(ring_bytes_for(1), kMostRingBytes);
  EXPECT_EQ(ring_bytes_for(2), kMostRingBytes);
  EXPECT_EQ(ring_bytes_for(9), kMostRingBytes);
  EXPECT_EQ(ring_bytes_for(10), kMostRingBytes / 2);
  EXPECT_EQ(ring_bytes_for(5000), kLeastRingBytes);
  for (size_t ranks = 2; ranks < 128; ++ranks) EXPECT_LE(2 * (ranks - 1) * ring_bytes_for(ranks), kRingBudgetBytes);
}

}  // namespace
}  // namespace halay::transport
