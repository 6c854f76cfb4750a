#include "execute/extent.h"

#include <gtest/gtest.h>

#include <array>

namespace halay::execute {
namespace {

TEST(Extent, GivesWhatLiesTogetherFromAnOffset) {
  std::array<std::byte, 10> a{};
  std::array<std::byte, 4> between{};
  std::array<std::byte, 6> b{};
  Extent extent;
  extent.add(a.data(), 10);
  extent.add(between.data(), 0);
  extent.add(b.data(), 6);
  EXPECT_EQ(extent.size_bytes(), 16u);
  EXPECT_EQ(extent.from(0).data(), a.data());
  EXPECT_EQ(extent.from(0).size(), 10u);
  EXPECT_EQ(extent.from(9).data(), a.data() + 9);
  EXPECT_EQ(extent.from(9).size(), 1u);
  EXPECT_EQ(extent.from(10).data(), b.data());
  EXPECT_EQ(extent.from(15).data(), b.data() + 5);
  EXPECT_EQ(extent.from(15).size(), 1u);
}

TEST(Extent, JoinsNeighbours) {
  std::array<std::byte, 30> memory{};
  Extent extent;
  extent.add(memory.data(), 10);
  extent.add(memory.data() + 10, 5);
  extent.add(memory.data() + 20, 10);
  EXPECT_EQ(extent.piece_count(), 2u);
  EXPECT_EQ(extent.from(3).size(), 12u);
  EXPECT_EQ(extent.from(15).data(), memory.data() + 20);
}

TEST(Extent, KeepsNullOutWhereNothingIsBound) {
  Extent extent;
  extent.add(nullptr, 0);
  EXPECT_EQ(extent.size_bytes(), 0u);
  EXPECT_EQ(extent.piece_count(), 0u);
}

TEST(ExtentDeathTest, RefusesWhatLiesBehindTheEnd) {
  std::array<std::byte, 4> memory{};
  Extent extent;
  extent.set(memory.data(), 4);
  EXPECT_DEATH((void)extent.from(4), "offset < size_bytes_");
}

}  // namespace
}  // namespace halay::execute
