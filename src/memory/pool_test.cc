#include "memory/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

// Sanitizers end the process at an impossible size unless told to answer as the system does.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace halay::memory {
namespace {

Block take(Pool& pool, size_t size_bytes) { return std::move(pool.take(size_bytes)).value(); }

TEST(SizeClass, HasRoomAndWastesAtMostAQuarter) {
  for (size_t size = 1; size < 100'000; ++size) {
    ASSERT_GE(size_class(size), size);
    ASSERT_EQ(size_class(size) % kAlignment, 0u);
    if (size > 1024) {
      ASSERT_LE(size_class(size), size + size / 4 + 1) << size;
    }
    ASSERT_EQ(size_class(size_class(size)), size_class(size));
  }
  EXPECT_EQ(size_class(SIZE_MAX), 0u);
}

TEST(Pool, GivesAlignedBlocksThatCanBeWritten) {
  Pool pool;
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{5000}, size_t{3} << 20}) {
    const Block block = take(pool, size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data()) % kAlignment, 0u);
    EXPECT_EQ(block.size_bytes(), size);
    std::memset(block.data(), 1, size);
  }
}

TEST(Pool, UsesABlockOfTheSameClassAgain) {
  Pool pool;
  void* first;
  {
    const Block block = take(pool, 5000);
    first = block.data();
  }
  const Block again = take(pool, 4900);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(pool.counters().taken, 2u);
  EXPECT_EQ(pool.counters().reused, 1u);
  const Block other = take(pool, 9000);
  EXPECT_NE(other.data(), first);
  EXPECT_EQ(pool.counters().reused, 1u);
}

TEST(Pool, CountsWhatItHoldsAndThePeak) {
  Pool pool;
  {
    const Block a = take(pool, 1 << 20), b = take(pool, 1 << 20);
    EXPECT_EQ(pool.counters().in_use_bytes, size_t{2} << 20);
    EXPECT_EQ(pool.counters().held_bytes, size_t{2} << 20);
  }
  EXPECT_EQ(pool.counters().in_use_bytes, 0u);
  EXPECT_EQ(pool.counters().held_bytes, size_t{2} << 20);
  pool.trim({0});
  pool.trim(Time{0}.plus_ms(30'000));
  EXPECT_EQ(pool.counters().held_bytes, 0u);
  EXPECT_EQ(pool.counters().held_bytes_peak, size_t{2} << 20);
}

TEST(Pool, ReleasesOnlyWhatWasUnusedForLong) {
  Pool pool({.keep_ms = 1000});
  EXPECT_EQ(pool.next_trim(), Time::never());
  {
    const Block a = take(pool, 2000), b = take(pool, 50'000);
  }
  EXPECT_LE(pool.next_trim(), Time{0});
  pool.trim({0});
  EXPECT_EQ(pool.next_trim(), Time{0}.plus_ms(1000));
  {
    const Block a = take(pool, 2000);
  }  // used meanwhile
  pool.trim(Time{0}.plus_ms(1000));
  EXPECT_EQ(pool.counters().held_bytes, size_class(2000));
  pool.trim(Time{0}.plus_ms(2000));
  EXPECT_EQ(pool.counters().held_bytes, 0u);
  EXPECT_EQ(pool.next_trim(), Time::never());
}

TEST(Pool, KeepsAtMostItsShareAndLetsTheLongestUnusedGo) {
  Pool pool({.keep_bytes = 10'000});
  Block a = take(pool, 4096), b = take(pool, 4096), c = take(pool, 4096);
  void* const kept = c.data();
  b.give_back();
  a.give_back();
  c.give_back();  // one too many: b goes
  EXPECT_EQ(pool.counters().held_bytes, 8192u);
  EXPECT_EQ(take(pool, 4096).data(), kept);
}

TEST(Pool, AnswersAnImpossibleSizeWithNoMemory) {
  Pool pool;
  for (const size_t size : {SIZE_MAX, SIZE_MAX / 2}) {
    const auto block = pool.take(size);
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.status().code(), Code::no_memory);
    EXPECT_NE(block.status().text().find(std::to_string(size)), std::string::npos);
  }
  EXPECT_EQ(pool.counters().held_bytes, 0u);
}

TEST(Pool, GivesNothingForNothing) {
  Pool pool;
  EXPECT_EQ(take(pool, 0).data(), nullptr);
  EXPECT_EQ(pool.counters().taken, 0u);
}

TEST(Block, CanBeMovedAndComesBackOnce) {
  Pool pool;
  Block a = take(pool, 100);
  Block b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is shown
  a = take(pool, 100);
  b = std::move(a);
  EXPECT_EQ(pool.counters().in_use_bytes, 1024u);
  b.give_back();
  b.give_back();
  EXPECT_EQ(pool.counters().in_use_bytes, 0u);
}

TEST(Pool, NeverLendsTheSameBytesTwice) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  Pool pool({.keep_bytes = 100'000, .keep_ms = 5});
  std::vector<std::pair<Block, unsigned char>> lent;
  for (int step = 0; step < 5000; ++step) {
    if (lent.size() < 20 && random() % 2 == 0) {
      Block block = take(pool, 1 + random() % 20'000);
      const auto fill = static_cast<unsigned char>(random());
      std::memset(block.data(), fill, block.size_bytes());
      lent.emplace_back(std::move(block), fill);
    } else if (!lent.empty()) {
      const size_t index = random() % lent.size();
      const auto* bytes = static_cast<const unsigned char*>(lent[index].first.data());
      for (size_t i = 0; i < lent[index].first.size_bytes(); ++i) ASSERT_EQ(bytes[i], lent[index].second);
      std::swap(lent[index], lent.back());
      lent.pop_back();
    }
    pool.trim(Time{0}.plus_ms(step));
  }
}

TEST(PoolDeathTest, SaysSoWhenABlockOutlivesIt) {
  EXPECT_DEATH(
      {
        Block block;
        Pool pool;
        block = take(pool, 100);
      },
      "in_use_bytes == 0");
}

}  // namespace
}  // namespace halay::memory
