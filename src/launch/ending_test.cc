#include "launch/ending.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "launch/signals.h"

namespace halay::launch {
namespace {

constexpr int exited(int code) { return code << 8; }  // as wait() encodes it
const Time kStart{1'000'000'000};

TEST(Ending, TheFirstFailureGivesTheExitCode) {
  Ending ending;
  EXPECT_EQ(ending.exit_code(), 0);
  EXPECT_EQ(ending.next_deadline(), Time::never());
  ending.rank_failed(2, 77, exited(13), kStart);
  ending.rank_failed(0, 75, exited(1), kStart.plus_ms(1));
  EXPECT_EQ(ending.exit_code(), 13);
  EXPECT_EQ(ending.verdict(), "rank 2 (pid 77) failed first: exit code 13");
}

TEST(Ending, ASignalCountsAs128AndIsNamed) {
  Ending ending;
  ending.rank_failed(1, 76, SIGKILL, kStart);
  EXPECT_EQ(ending.exit_code(), 137);
  EXPECT_EQ(ending.verdict(), "rank 1 (pid 76) failed first: killed by SIGKILL; exit code 137");
}

TEST(Ending, SurvivorsAreAskedThenKilledWithinFiveSeconds) {
  Ending ending;
  ending.rank_failed(0, 75, exited(1), kStart);
  const Time term_at = ending.next_deadline();
  EXPECT_GE(seconds_between(kStart, term_at), 1.0) << "a survivor sees the death of a peer in under a second";
  ending.advance(term_at, {});
  const Time kill_at = ending.next_deadline();
  EXPECT_GT(kill_at, term_at);
  EXPECT_LT(seconds_between(kStart, kill_at), 5.0);
}

TEST(Ending, WhatTheUserEndedIsNotBlamedOnARank) {
  Ending ending;
  ending.passed_on(SIGINT, kStart, {});
  ending.rank_failed(0, 75, exited(1), kStart.plus_ms(10));
  EXPECT_EQ(ending.exit_code(), 130);
  EXPECT_EQ(ending.verdict(), "ended by SIGINT; exit code 130");
}

TEST(Ending, ASecondSignalDoesNotWait) {
  Ending ending;
  ending.passed_on(SIGTERM, kStart, {});
  EXPECT_GT(ending.next_deadline(), kStart.plus_ms(1'000));
  ending.passed_on(SIGTERM, kStart.plus_ms(10), {});
  EXPECT_EQ(ending.next_deadline(), kStart.plus_ms(10));
}

TEST(Ending, WithoutItsGuardTheJobEndsAtOnce) {
  Ending ending;
  ending.guard_lost(kStart);
  EXPECT_TRUE(ending.alone());
  EXPECT_EQ(ending.next_deadline(), kStart);
  EXPECT_NE(ending.exit_code(), 0);
}

TEST(SignalName, IsTheOneThatPeopleKnow) {
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(64), "signal 64");
}

}  // namespace
}  // namespace halay::launch
