#include "collective/canonical.h"

#include "base/check.h"
#include "collective/plan.h"

namespace halay::collective {

Fold::Fold(int member_count) {
  HALAY_ASSERT(member_count >= 1);
  while (2 * leaf_count <= member_count) {
    leaf_count *= 2;
    ++rounds;
  }
  pair_count = member_count - leaf_count;
}

std::vector<Merge> canonical_merges(int member_count) {
  const Fold fold(member_count);
  std::vector<Merge> merges;
  for (int i = 0; i < fold.pair_count; ++i) merges.push_back({2 * i, 2 * i + 1});
  for (int distance = 1; distance < fold.leaf_count; distance *= 2) {
    for (int leaf = 0; leaf < fold.leaf_count; leaf += 2 * distance) {
      merges.push_back({fold.member_of(leaf), fold.member_of(leaf + distance)});
    }
  }
  return merges;
}

}  // namespace halay::collective
