#include "negotiate/bursts.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace halay::negotiate {
namespace {

struct Tensors {
  Bursts bursts;
  BurstPlace a, b, c;

  void ready(std::initializer_list<BurstPlace*> places) {
    for (const BurstPlace* place : places) bursts.ready(*place);
  }
  void close(std::initializer_list<BurstPlace*> places, bool join_previous = false) {
    const std::vector<BurstPlace*> all(places);
    bursts.close(all, join_previous);
  }
};

TEST(Bursts, KnowsNothingAtFirst) {
  Tensors t;
  EXPECT_TRUE(t.bursts.settled());
  t.ready({&t.a});
  EXPECT_FALSE(t.bursts.settled());
  EXPECT_TRUE(t.bursts.only_unknown());
}

TEST(Bursts, ExpectsWhatWasDecidedTogether) {
  Tensors t;
  t.ready({&t.a, &t.b});
  t.close({&t.a, &t.b});
  t.ready({&t.b});
  EXPECT_FALSE(t.bursts.settled());
  EXPECT_FALSE(t.bursts.only_unknown());
  t.ready({&t.a});
  EXPECT_TRUE(t.bursts.settled());
}

TEST(Bursts, ALoneTensorIsSettledAtOnce) {
  Tensors t;
  t.ready({&t.a});
  t.close({&t.a});
  for (int step = 0; step < 3; ++step) {
    t.ready({&t.a});
    EXPECT_TRUE(t.bursts.settled());
    t.close({&t.a});
  }
}

TEST(Bursts, StopsWaitingForACompanionThatStaysAwayAgainAndAgain) {
  Tensors t;
  t.ready({&t.a, &t.b});
  t.close({&t.a, &t.b});
  int waits = 0;
  for (int step = 0; step < 20; ++step) {
    t.ready({&t.a});
    waits += t.bursts.settled() ? 0 : 1;
    t.close({&t.a});
  }
  EXPECT_EQ(waits, 5);
  t.ready({&t.b});
  EXPECT_TRUE(t.bursts.settled());
}

TEST(Bursts, AreWholeAgainAfterALateRankHasCutThem) {
  Tensors t;
  t.ready({&t.a, &t.b, &t.c});
  t.close({&t.a, &t.b, &t.c});
  for (int step = 0; step < 10; ++step) {
    if (step % 2 == 0) {  // every other step one wait is over before all are there
      t.ready({&t.a});
      t.close({&t.a});
      t.ready({&t.b, &t.c});
      t.close({&t.b, &t.c});
    } else {
      t.ready({&t.a, &t.b});
      EXPECT_FALSE(t.bursts.settled());
      t.ready({&t.c});
      EXPECT_TRUE(t.bursts.settled());
      t.close({&t.a, &t.b, &t.c});
    }
  }
}

TEST(Bursts, TwoCompleteOnesInOneCloseStayTwo) {
  Tensors t;
  t.ready({&t.a});
  t.close({&t.a});
  t.ready({&t.b, &t.c});
  t.close({&t.b, &t.c});
  t.ready({&t.a, &t.b, &t.c});
  t.close({&t.a, &t.b, &t.c});
  EXPECT_EQ(t.bursts.previous(), 0u);
  t.ready({&t.a});
  EXPECT_TRUE(t.bursts.settled());
}

TEST(Bursts, GrowsWhenToldThatTheNextBelongsToThePrevious) {
  Tensors t;
  t.ready({&t.a});
  t.close({&t.a});
  t.ready({&t.b});
  t.close({&t.b}, true);
  t.ready({&t.a});
  EXPECT_FALSE(t.bursts.settled());
  t.ready({&t.b});
  EXPECT_TRUE(t.bursts.settled());
  t.close({&t.a, &t.b});
  EXPECT_EQ(t.bursts.previous(), t.a.burst);
}

TEST(Bursts, DoesNotWaitForWhatIsNotCachedAnyMore) {
  Tensors t;
  t.ready({&t.a, &t.b});
  t.close({&t.a, &t.b});
  t.ready({&t.a});
  EXPECT_FALSE(t.bursts.settled());
  t.bursts.leave(t.b);
  EXPECT_EQ(t.b.burst, 0u);
  EXPECT_TRUE(t.bursts.settled());
}

TEST(Bursts, TensorsThatAreNotCachedLeaveNoTrace) {
  Tensors t;
  for (int step = 0; step < 3; ++step) {
    t.ready({&t.a});
    EXPECT_TRUE(t.bursts.only_unknown());
    t.close({});
    EXPECT_TRUE(t.bursts.settled());
  }
}

}  // namespace
}  // namespace halay::negotiate
