// How worlds come to be, and how they do not.
#include "net/connect.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>

#include "transport/door_address.h"
#include "transport/fabric.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

class ConnectTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, ConnectTest, testing::Values("inproc", "shm", "tcp", "auto"));

TEST_P(ConnectTest, RefusesAnotherWireVersionWithBothValues) {
  const auto world = connect_world(test_options(GetParam()), 2, [](auto&, auto& addresses) {
    const uint32_t version = kWireVersion + 6;
    std::memcpy(addresses[1].data() + 8, &version, sizeof version);
  });
  EXPECT_EQ(world.statuses[0].code(), Code::mismatch);
  EXPECT_EQ(world.statuses[0].text(), "the ranks do not fit together: the wire version is 1 on rank 0 and 7 on rank 1");
}

TEST_P(ConnectTest, RefusesAnotherBuildWithBothValues) {
  auto options = test_options(GetParam());
  if (options.transport == "inproc") options.hub = make_inproc_hub();
  auto door = open_door(options).value();
  options.build_id = "another build";
  auto other = open_door(options).value();
  const std::vector<std::vector<std::byte>> addresses = {{door->address().begin(), door->address().end()},
                                                         {other->address().begin(), other->address().end()}};
  const auto fabric = connect(std::move(door), 0, addresses, options);
  EXPECT_EQ(fabric.status().text(),
            "the ranks do not fit together: the build is 'test build' on rank 0 and 'another build' on rank 1");
}

TEST_P(ConnectTest, NamesTheRanksThatDidNotCome) {
  auto options = test_options(GetParam());
  if (options.transport == "inproc") options.hub = make_inproc_hub();
  options.connect_timeout_ms = 200;
  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::vector<std::byte>> addresses;
  for (int rank = 0; rank < 3; ++rank) {
    doors.push_back(open_door(options).value());
    addresses.emplace_back(doors.back()->address().begin(), doors.back()->address().end());
  }
  const size_t before = open_descriptors();
  const auto fabric = connect(std::move(doors[1]), 1, addresses, options);
  ASSERT_FALSE(fabric.ok());
  EXPECT_EQ(fabric.status().code(), Code::timeout);
  EXPECT_NE(fabric.status().text().find("rank 1: the world of 3 ranks was not complete in time; missing: ranks [0, 2]"),
            std::string::npos)
      << fabric.status().text();
  EXPECT_LE(open_descriptors(), before);
}

TEST_P(ConnectTest, RefusesTheAddressOfSomebodyElse) {
  auto options = test_options(GetParam());
  if (options.transport == "inproc") options.hub = make_inproc_hub();
  auto door = open_door(options).value();
  auto other = open_door(options).value();
  const std::vector<std::vector<std::byte>> addresses = {{other->address().begin(), other->address().end()}};
  EXPECT_EQ(connect(std::move(door), 0, addresses, options).status().code(), Code::invalid_argument);
}

TEST(Connect, TurnsAWrongKeyAwayWithAClearText) {
  for (const char* transport : {"shm", "tcp", "auto"}) {
    auto base = test_options(transport);
    base.connect_timeout_ms = 700;
    const auto world = connect_world(base, 2, [](auto& options, auto&) { options[1].key = "a wrong key"; });
    EXPECT_EQ(world.statuses[1].text(), "rank 0 refused: its job key is not this rank's") << transport;
    EXPECT_EQ(world.statuses[0].code(), Code::timeout);
    EXPECT_NE(world.statuses[0].text().find("missing: ranks [1]; a connection with another job key was refused"),
              std::string::npos)
        << world.statuses[0].text();
  }
}

TEST(Connect, StrangersDoNotHoldUpTheWorld) {
  std::vector<std::unique_ptr<net::Stream>> strangers;
  const auto world = connect_world(test_options("tcp"), 3, [&](auto&, auto& addresses) {
    for (size_t rank = 0; rank < 3; ++rank) {
      const DoorAddress address = decode_door_address(addresses[rank]).value();
      for (int i = 0; i < 10; ++i) {
        const auto target = net::Address::parse(address.tcp_addresses.back()).value();
        strangers.push_back(net::connect(target, system_clock().now().plus_ms(10'000)).value());
        const auto request = bytes_of("GET / HTTP/1.1\r\nHost: nobody\r\n\r\n");
        if (i % 2 == 0) continue;  // these say nothing at all
        ASSERT_TRUE(strangers.back()->write_some({&request, 1}).ok());
      }
    }
  });
  for (size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(world.fabrics[rank]) << world.statuses[rank].text();
}

TEST(Connect, SaysWhatATransportIsCalled) {
  EXPECT_EQ(open_door(test_options("smoke signals")).status().text(),
            "transport 'smoke signals' is not known; allowed are auto, shm, tcp and inproc");
  EXPECT_EQ(open_door(test_options("inproc")).status().code(), Code::invalid_argument);
  auto options = test_options("tcp");
  options.interfaces = "no-such-interface";
  EXPECT_NE(open_door(options).status().text().find("no-such-interface"), std::string::npos);
}

TEST(Connect, KeepsToTheInterfacesThatWereNamed) {
  auto options = test_options("tcp");
  options.interfaces = "lo";
  const DoorAddress address = decode_door_address(open_door(options).value()->address()).value();
  ASSERT_FALSE(address.tcp_addresses.empty());
  for (const std::string& tcp : address.tcp_addresses)
    EXPECT_TRUE(net::Address::parse(tcp).value().is_loopback()) << tcp;
}

// --- processes that die ---

class DeathTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, DeathTest, testing::Values("shm", "tcp", "auto"));

struct Child {
  pid_t pid = -1;
  int to_child[2], from_child[2];
};

// Rank 1 in a process of its own; `live` runs there once the world stands.
template <typename Live>
Child fork_rank_one(const FabricOptions& options, Live live) {
  Child child;
  EXPECT_EQ(::pipe(child.to_child), 0);
  EXPECT_EQ(::pipe(child.from_child), 0);
  child.pid = ::fork();
  if (child.pid != 0) return child;
  ::close(child.to_child[1]);
  ::close(child.from_child[0]);
  auto door = open_door(options).value();
  std::vector<std::vector<std::byte>> addresses(2);
  addresses[1].assign(door->address().begin(), door->address().end());
  const uint32_t mine = static_cast<uint32_t>(addresses[1].size());
  bool ok = ::write(child.from_child[1], &mine, sizeof mine) == sizeof mine;
  ok = ok && ::write(child.from_child[1], addresses[1].data(), mine) == static_cast<ssize_t>(mine);
  uint32_t theirs = 0;
  ok = ok && ::read(child.to_child[0], &theirs, sizeof theirs) == sizeof theirs;
  addresses[0].resize(theirs);
  ok = ok && ::read(child.to_child[0], addresses[0].data(), theirs) == static_cast<ssize_t>(theirs);
  if (!ok) ::_exit(3);
  auto fabric = connect(std::move(door), 1, addresses, options);
  if (!fabric.ok()) ::_exit(4);
  live(*fabric.value(), child.to_child[0]);
  ::_exit(0);
}

std::unique_ptr<Fabric> join_child(const Child& child, const FabricOptions& options) {
  ::close(child.to_child[0]);
  ::close(child.from_child[1]);
  auto door = open_door(options).value();
  std::vector<std::vector<std::byte>> addresses(2);
  addresses[0].assign(door->address().begin(), door->address().end());
  uint32_t theirs = 0;
  EXPECT_EQ(::read(child.from_child[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
  addresses[1].resize(theirs);
  EXPECT_EQ(::read(child.from_child[0], addresses[1].data(), theirs), static_cast<ssize_t>(theirs));
  const uint32_t mine = static_cast<uint32_t>(addresses[0].size());
  EXPECT_EQ(::write(child.to_child[1], &mine, sizeof mine), static_cast<ssize_t>(sizeof mine));
  EXPECT_EQ(::write(child.to_child[1], addresses[0].data(), mine), static_cast<ssize_t>(mine));
  auto fabric = connect(std::move(door), 0, addresses, options);
  EXPECT_TRUE(fabric.ok()) << fabric.status().text();
  return fabric.ok() ? std::move(fabric).value() : nullptr;
}

void bury(const Child& child) {
  ::close(child.to_child[1]);
  ::close(child.from_child[0]);
  EXPECT_EQ(::waitpid(child.pid, nullptr, 0), child.pid);
}

// Sleeps and drives until the fabric knows of a loss; how long that took in seconds.
double until_lost(Fabric& fabric, KeepingSink& sink, Time from) {
  const Time end = from.plus_ms(30'000);
  while (fabric.status().ok() && system_clock().now() < end) {
    if (fabric.progress(sink, system_clock().now()) || !fabric.prepare_wait()) continue;
    fabric.wait(std::min(end, fabric.next_deadline()));
    fabric.end_wait();
  }
  return seconds_between(from, system_clock().now());
}

void wait_for_word(int from) {
  char byte;
  while (::read(from, &byte, 1) < 0) {
  }
}

TEST_P(DeathTest, OfAProcessIsKnownAtOnceAfterItsLastFrame) {
  const auto options = test_options(GetParam());
  const Child child = fork_rank_one(options, [](Fabric& fabric, int from) {
    wait_for_word(from);
    fabric.channel(0)->send_frame(FrameKind::control, 1, bytes_of("last words"));
    ::_exit(0);
  });
  auto fabric = join_child(child, options);
  ASSERT_TRUE(fabric);
  KeepingSink sink;
  const Time from = system_clock().now();
  ASSERT_EQ(::write(child.to_child[1], "x", 1), 1);
  const double seconds = until_lost(*fabric, sink, from);
  EXPECT_LT(seconds, 5.0);
  printf("known after %.6f s\n", seconds);
  ASSERT_EQ(sink.frames.size(), 1u);
  EXPECT_EQ(sink.frames[0].payload, "last words");
  EXPECT_EQ(fabric->status().culprit(), 1);
  EXPECT_EQ(fabric->status().text(), "rank 1 died: its connection closed without a goodbye");
  bury(child);
}

TEST_P(DeathTest, OfAKilledProcessIsKnownEvenIfItsForkedChildrenStillHoldTheSockets) {
  const auto options = test_options(GetParam());
  const Child child = fork_rank_one(options, [](Fabric&, int from) {
    if (::fork() == 0) {
      wait_for_word(from);  // until the test closes the pipe
      ::_exit(0);
    }
    wait_for_word(from);
    ::kill(::getpid(), SIGKILL);
  });
  auto fabric = join_child(child, options);
  ASSERT_TRUE(fabric);
  KeepingSink sink;
  const Time from = system_clock().now();
  ::kill(child.pid, SIGKILL);
  const double seconds = until_lost(*fabric, sink, from);
  printf("known after %.6f s\n", seconds);
  EXPECT_LT(seconds, 5.0);
  EXPECT_EQ(fabric->status().culprit(), 1);
  bury(child);
}

TEST(Death, OfASilentTcpPeerIsKnownByItsMissingHeartbeat) {
  auto options = test_options("tcp");
  options.heartbeat_ms = 300;
  TestWorld world = connect_world(options, 2, [](auto&, auto&) {});
  ASSERT_TRUE(world.fabrics[0] && world.fabrics[1]);
  // Time is an argument: both drive for a long while on their own clock, and nobody is lost.
  Time now{1'000'000'000};
  for (int i = 0; i < 100; ++i) {
    now = now.plus_ms(20);
    for (size_t rank : {0u, 1u, 0u, 1u}) world[rank].progress(*world.sinks[rank], now);
    EXPECT_LE(world[0].next_deadline(), now.plus_ms(100));
  }
  EXPECT_TRUE(world[0].status().ok()) << world[0].status().text();
  EXPECT_GT(world.sinks[0]->frames.size(), 5u);
  EXPECT_EQ(world.sinks[0]->frames[0].kind, FrameKind::heartbeat);
  // Then rank 1 stops.
  for (int i = 0; i < 20 && world[0].status().ok(); ++i) {
    now = now.plus_ms(50);
    world[0].progress(*world.sinks[0], now);
  }
  EXPECT_EQ(world[0].status().code(), Code::peer_lost);
  EXPECT_EQ(world[0].status().culprit(), 1);
  EXPECT_NE(world[0].status().text().find("rank 1 is silent"), std::string::npos);
}

TEST(Heartbeat, CarriesTheProgressOfTheApplication) {
  auto options = test_options("tcp");
  options.heartbeat_ms = 300;
  TestWorld world = connect_world(options, 2, [](auto&, auto&) {});
  ASSERT_TRUE(world.fabrics[0] && world.fabrics[1]);
  world[1].set_progress(1234);
  Time now{1'000'000'000};
  for (int i = 0; i < 50 && world.sinks[0]->frames.empty(); ++i) {
    now = now.plus_ms(50);
    for (size_t rank : {0u, 1u}) world[rank].progress(*world.sinks[rank], now);
  }
  ASSERT_FALSE(world.sinks[0]->frames.empty());
  EXPECT_EQ(ByteReader(bytes_of(world.sinks[0]->frames[0].payload)).number<uint64_t>(), 1234u);
}

}  // namespace
}  // namespace halay::transport
