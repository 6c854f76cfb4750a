#include "transport/mesh.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "net/connect.h"
#include "transport/pair.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

// A few ranks in threads, each with listeners of its own; a test changes the plans before they run.
struct Ranks {
  struct Rank {
    region::LocalListener local = region::listen_local().value();
    net::Listener tcp = net::Listener::open(net::Address::parse("127.0.0.1:0").value()).value();
    region::Doorbell bell = region::Doorbell::create().value();
    MeshPlan plan;
    std::vector<MeshLink> links;
    Status status;
  };

  explicit Ranks(size_t size) {
    std::vector<DoorAddress> world(size);
    for (size_t i = 0; i < size; ++i) {
      ranks.push_back(std::make_unique<Rank>());
      world[i].transport = "auto";
      world[i].machine = "here";
      world[i].local_name = ranks[i]->local.name;
      world[i].tcp_addresses = {ranks[i]->tcp.address().text()};
    }
    for (size_t i = 0; i < size; ++i) {
      MeshPlan& plan = ranks[i]->plan;
      plan.world = world;
      plan.identity = {"key", {}, static_cast<int32_t>(i), static_cast<int32_t>(size)};
      plan.local_listener = &ranks[i]->local.socket;
      plan.tcp_listener = &ranks[i]->tcp;
      plan.bell = &ranks[i]->bell;
      plan.pair_bytes = pair_bytes_for(4096);
      plan.deadline = system_clock().now().plus_ms(20'000);
    }
  }

  template <typename Change>
  void change(Change change) {
    for (auto& rank : ranks) {
      for (DoorAddress& address : rank->plan.world) change(address);
    }
  }
  void build() {
    std::vector<std::thread> threads;
    for (auto& rank : ranks) {
      threads.emplace_back([&rank] {
        auto links = build_mesh(rank->plan);
        if (links.ok()) {
          rank->links = std::move(links).value();
        } else {
          rank->status = links.status();
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  Rank& operator[](size_t i) { return *ranks[i]; }
  std::vector<std::unique_ptr<Rank>> ranks;
};

std::string address_where_nobody_listens() {
  return net::Listener::open(net::Address::parse("127.0.0.1:0").value()).value().address().text();
}

TEST(Mesh, SharesMemoryBetweenRanksOfOneMachine) {
  Ranks ranks(3);
  ranks.build();
  for (size_t a = 0; a < 3; ++a) {
    ASSERT_EQ(ranks[a].links.size(), 3u) << ranks[a].status.text();
    EXPECT_FALSE(ranks[a].links[a].made());
    for (size_t b = 0; b < a; ++b) {
      MeshLink &mine = ranks[a].links[b], &theirs = ranks[b].links[a];
      ASSERT_TRUE(mine.local_socket && theirs.local_socket && mine.segment && theirs.segment);
      mine.segment.data()[100] = static_cast<std::byte>(a + 1);
      EXPECT_EQ(theirs.segment.data()[100], static_cast<std::byte>(a + 1));
      EXPECT_TRUE(mine.peer_bell && theirs.peer_bell);
    }
  }
}

TEST(Mesh, SaysThatAnotherMachinesLoopbackIsNoWay) {
  Ranks ranks(2);
  ranks.ranks[0]->plan.world[1].machine = ranks.ranks[1]->plan.world[1].machine = "there";
  ranks[0].plan.deadline = system_clock().now().plus_ms(100);
  ranks.build();
  EXPECT_EQ(ranks[1].status.code(), Code::unsupported);
  EXPECT_EQ(ranks[1].status.text(), "rank 1 has no way to rank 0: transport 'auto' does not reach it");
}

TEST(Mesh, FallsBackToTcpWhereTheLocalSocketCannotBeReached) {
  Ranks ranks(2);
  ranks.change([](DoorAddress& address) { address.local_name = "halay-nobody-is-here"; });
  ranks.build();
  ASSERT_EQ(ranks[1].links.size(), 2u) << ranks[1].status.text();
  EXPECT_TRUE(ranks[1].links[0].stream);
  EXPECT_TRUE(ranks[0].links[1].stream);
}

TEST(Mesh, TriesTheNextAddressWhenNobodyListensAtOne) {
  Ranks ranks(2);
  const std::string unused = address_where_nobody_listens();
  ranks.change([&](DoorAddress& address) { address.tcp_addresses.insert(address.tcp_addresses.begin(), unused); });
  for (auto& rank : ranks.ranks) rank->plan.allow_local = false;
  ranks.build();
  ASSERT_EQ(ranks[1].links.size(), 2u) << ranks[1].status.text();
  EXPECT_TRUE(ranks[1].links[0].stream);
}

TEST(Mesh, TriesTheNextAddressWhenAnotherJobAnswersAtOne) {
  Ranks other_job(2), ranks(2);
  for (auto& rank : other_job.ranks) rank->plan.allow_local = false, rank->plan.identity.key = "another key";
  const std::string theirs = other_job[0].tcp.address().text();
  ranks.change([&](DoorAddress& address) { address.tcp_addresses.insert(address.tcp_addresses.begin(), theirs); });
  for (auto& rank : ranks.ranks) rank->plan.allow_local = false;
  std::thread others([&] {
    other_job[0].plan.deadline = system_clock().now().plus_ms(1000);
    (void)build_mesh(other_job[0].plan);  // waits for a rank 1 of its own
  });
  ranks.build();
  others.join();
  ASSERT_EQ(ranks[1].links.size(), 2u) << ranks[1].status.text();
  EXPECT_TRUE(ranks[0].links[1].stream);
}

TEST(Mesh, SaysWhyARankCouldNotBeReached) {
  Ranks ranks(2);
  ranks.change([unused = address_where_nobody_listens()](DoorAddress& address) { address.tcp_addresses = {unused}; });
  for (auto& rank : ranks.ranks) {
    rank->plan.allow_local = false;
    rank->plan.deadline = system_clock().now().plus_ms(300);
  }
  ranks.build();
  EXPECT_EQ(ranks[1].status.code(), Code::timeout);
  EXPECT_EQ(ranks[1].status.culprit(), 0);
  EXPECT_NE(ranks[1].status.text().find("missing: ranks [0]; rank 0: connect to 127.0.0.1:"), std::string::npos)
      << ranks[1].status.text();
  EXPECT_NE(ranks[1].status.text().find("Connection refused"), std::string::npos);
}

TEST(Mesh, TakesTheNewestConnectionOfARankThatTriedTwice) {
  Ranks ranks(2);
  // The first try: rank 1 proves itself and goes away.
  std::thread acceptor([&] {
    auto links = build_mesh(ranks[0].plan);
    if (links.ok()) ranks[0].links = std::move(links).value();
  });
  {
    Conversation::Surroundings surroundings{ranks[1].plan.identity, ranks[1].plan.pair_bytes, &ranks[1].bell};
    auto socket = region::connect_local(ranks[0].local.name).value();
    Conversation given_up(surroundings, 0, std::move(socket));
    ASSERT_TRUE(given_up.advance().ok());
  }
  auto links = build_mesh(ranks[1].plan);
  acceptor.join();
  ASSERT_TRUE(links.ok()) << links.status().text();
  ASSERT_EQ(ranks[0].links.size(), 2u);
  links.value()[0].segment.data()[7] = std::byte{5};
  EXPECT_EQ(ranks[0].links[1].segment.data()[7], std::byte{5});
}

TEST(Mesh, AStrangerWhoBreaksOffInTheMiddleHurtsNobody) {
  Ranks ranks(2);
  auto socket = region::connect_local(ranks[0].local.name).value();
  const std::byte bytes[5] = {};
  ASSERT_EQ(region::send_local(socket.get(), bytes, {}), region::Passing::done);
  socket.reset();
  ranks.build();
  EXPECT_EQ(ranks[0].links.size(), 2u) << ranks[0].status.text();
}

}  // namespace
}  // namespace halay::transport
