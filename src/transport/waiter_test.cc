#include "transport/waiter.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "net/stream.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

struct Watched {
  std::unique_ptr<Waiter> waiter = Waiter::make().value();
  net::StreamPair streams = net::stream_pair().value();
  std::array<SocketEvent, 8> events;

  Watched() {
    EXPECT_TRUE(waiter->watch(streams.first->fd(), 77).ok());
    waiter->look(events);  // what it is like at the beginning
  }
  void say() {
    const auto part = bytes_of("x");
    ASSERT_TRUE(streams.second->write_some({&part, 1}).ok());
  }
  // Whether wait() ends by itself, well before a deadline that nobody wants to see pass.
  bool wakes() {
    const Time begin = system_clock().now();
    waiter->wait(begin.plus_ms(20));
    return system_clock().now() < begin.plus_ms(20);
  }
};

TEST(Waiter, TellsOfEachChangeOnce) {
  Watched watched;
  EXPECT_EQ(watched.waiter->look(watched.events), 0u);
  watched.say();
  ASSERT_EQ(watched.waiter->look(watched.events), 1u);
  EXPECT_EQ(watched.events[0].tag, 77u);
  EXPECT_TRUE(watched.events[0].readable);
  EXPECT_FALSE(watched.events[0].hung_up);
  EXPECT_EQ(watched.waiter->look(watched.events), 0u);
  watched.streams.second.reset();
  ASSERT_EQ(watched.waiter->look(watched.events), 1u);
  EXPECT_TRUE(watched.events[0].hung_up);
}

TEST(Waiter, WakesForASocketOnceForEachArming) {
  Watched watched;
  watched.waiter->arm();
  EXPECT_FALSE(watched.wakes());
  watched.say();
  EXPECT_TRUE(watched.wakes());
  EXPECT_FALSE(watched.wakes());  // nobody has read it, and still it lets one sleep
  watched.say();
  EXPECT_FALSE(watched.wakes());
  watched.waiter->arm();
  EXPECT_TRUE(watched.wakes());
}

TEST(Waiter, DoesNotWakeForWhatWasLookedAt) {
  Watched watched;
  watched.say();
  watched.waiter->look(watched.events);
  watched.waiter->arm();
  EXPECT_FALSE(watched.wakes());
}

TEST(Waiter, WakesForEachRingEvenIfItCameBefore) {
  Watched watched;
  watched.waiter->wake();
  EXPECT_TRUE(watched.wakes());
  EXPECT_FALSE(watched.wakes());
  watched.waiter->bell()->ring();
  EXPECT_TRUE(watched.wakes());
}

TEST(Waiter, ForgetsASocket) {
  Watched watched;
  watched.waiter->forget(watched.streams.first->fd());
  watched.say();
  EXPECT_EQ(watched.waiter->look(watched.events), 0u);
}

}  // namespace
}  // namespace halay::transport
