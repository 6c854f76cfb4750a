#include "collective/canonical.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collective/plan.h"

namespace halay::collective {
namespace {

// The tree in writing: "((0 1) 2)".
std::string tree_of(int member_count) {
  std::vector<std::string> values;
  for (int m = 0; m < member_count; ++m) values.push_back(std::to_string(m));
  for (const Merge& merge : canonical_merges(member_count)) {
    std::string& left = values[static_cast<size_t>(merge.left)];
    left = "(" + left + " " + values[static_cast<size_t>(merge.right)] + ")";
  }
  return values[0];
}

TEST(Canonical, FoldsPairsFirstAndThenMergesAPerfectTree) {
  EXPECT_EQ(tree_of(1), "0");
  EXPECT_EQ(tree_of(2), "(0 1)");
  EXPECT_EQ(tree_of(3), "((0 1) 2)");
  EXPECT_EQ(tree_of(4), "((0 1) (2 3))");
  EXPECT_EQ(tree_of(6), "(((0 1) (2 3)) (4 5))");
  EXPECT_EQ(tree_of(7), "(((0 1) (2 3)) ((4 5) 6))");
}

TEST(Canonical, MergesEveryMemberOnceWithTheLowerOnTheLeft) {
  for (int p = 1; p <= 130; ++p) {
    const std::vector<Merge> merges = canonical_merges(p);
    ASSERT_EQ(merges.size(), static_cast<size_t>(p - 1));
    std::vector<bool> gone(static_cast<size_t>(p), false);
    for (const Merge& merge : merges) {
      ASSERT_LT(merge.left, merge.right);
      ASSERT_FALSE(gone[static_cast<size_t>(merge.left)]);
      ASSERT_FALSE(gone[static_cast<size_t>(merge.right)]);
      gone[static_cast<size_t>(merge.right)] = true;
    }
    ASSERT_FALSE(gone[0]);
  }
}

TEST(Fold, GivesEveryLeafOneMember) {
  for (int p = 1; p <= 40; ++p) {
    const Fold fold(p);
    for (int leaf = 0; leaf < fold.leaf_count; ++leaf) {
      ASSERT_EQ(fold.leaf_of(fold.member_of(leaf)), leaf);
      ASSERT_FALSE(fold.gives(fold.member_of(leaf)));
    }
  }
}

}  // namespace
}  // namespace halay::collective
