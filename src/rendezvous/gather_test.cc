#include "rendezvous/gather.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/bytes.h"
#include "base/text.h"
#include "rendezvous/store_server.h"

namespace halay::rendezvous {
namespace {

using Addresses = std::vector<std::vector<std::byte>>;

Time in_ms(int64_t ms) { return system_clock().now().plus_ms(ms); }

struct Job {
  std::string key = make_job_key();
  std::unique_ptr<StoreServer> store = std::move(StoreServer::start(key)).value();

  Result<Addresses> gather(int32_t rank, int32_t size, std::string host, std::string_view address, int64_t timeout_ms,
                           int64_t epoch = 0) {
    StoreClient client = std::move(StoreClient::connect(store->address(), key, in_ms(20'000))).value();
    return gather_addresses(client, {rank, size, std::move(host), bytes_of(address), epoch}, in_ms(timeout_ms));
  }
};

TEST(Gather, GivesEveryRankTheAddressesOfAllInOrder) {
  Job job;
  constexpr int32_t kSize = 17;
  std::vector<std::jthread> ranks;
  for (int32_t rank = 0; rank < kSize; ++rank) {
    ranks.emplace_back([&job, rank] {
      const auto all = job.gather(rank, kSize, "host", text("address of ", rank), 20'000);
      ASSERT_TRUE(all.ok()) << all.status().text();
      ASSERT_EQ(all.value().size(), size_t{kSize});
      for (int32_t r = 0; r < kSize; ++r) {
        EXPECT_EQ(text_of(all.value()[static_cast<size_t>(r)]), text("address of ", r));
      }
    });
  }
}

// R18 of spec/users.md.
TEST(Gather, R18OneOfTwoExpectedWorkersIsNamedWithTheHostOfTheOther) {
  Job job;
  const auto late = job.gather(0, 2, "X", "a", 50);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.status().code(), Code::timeout);
  EXPECT_NE(late.status().text().find("have rank 0 from host X, missing rank 1"), std::string::npos)
      << late.status().text();
}

TEST(Gather, ALongRollCallStaysShort) {
  Job job;
  for (const int32_t rank : {0, 1, 2, 5}) {
    const auto late = job.gather(rank, 9, rank == 5 ? "b" : "a", "x", 100);
    ASSERT_FALSE(late.ok());
    if (rank == 5) {
      EXPECT_NE(
          late.status().text().find("have ranks 0-2 from host a and rank 5 from host b, missing ranks 3, 4 and 6-8"),
          std::string::npos)
          << late.status().text();
    }
  }
}

TEST(Gather, TwoProcessesThatClaimOneRankAreToldApart) {
  Job job;
  StoreClient first = std::move(StoreClient::connect(job.store->address(), job.key, in_ms(20'000))).value();
  EXPECT_FALSE(job.gather(1, 2, "a", "one", 100).ok());
  std::jthread second([&] {
    // Takes the place of the first, and is itself fine.
    EXPECT_TRUE(job.gather(0, 2, "a", "zero", 20'000).ok());
  });
  second.join();
  EXPECT_TRUE(job.gather(1, 2, "b", "another one", 20'000).ok());
}

TEST(Gather, RanksThatDisagreeAboutTheSizeBothShowIt) {
  Job job;
  EXPECT_FALSE(job.gather(0, 3, "a", "x", 100).ok());
  const auto other = job.gather(1, 2, "b", "y", 20'000);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().code(), Code::mismatch);
  EXPECT_EQ(other.status().text(), "start: rank 1 was told a size of 2, rank 0 on host a a size of 3");
}

TEST(Gather, AnotherWorldOfTheSameJobStartsFresh) {
  Job job;
  EXPECT_TRUE(job.gather(0, 1, "a", "old", 20'000, 0).ok());
  const auto next = job.gather(0, 1, "a", "new", 20'000, 1);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(text_of(next.value()[0]), "new");
}

TEST(RankList, ReadsLikeASentence) {
  EXPECT_EQ(rank_list({}), "no rank");
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({2, 1}), "ranks 1 and 2");
  EXPECT_EQ(rank_list({7, 1, 2, 3}), "ranks 1-3 and 7");
  EXPECT_EQ(rank_list({0, 2, 4, 5}), "ranks 0, 2, 4 and 5");
}

}  // namespace
}  // namespace halay::rendezvous
