// The places of the canonical tree (rule 9): who is folded onto whom, and who is which leaf. Private to this room.
// Thread: any (values).
#pragma once

#include <cstdint>

namespace halay::collective {

// With p = 2^k + r members, 0 <= r < 2^k: members 2i and 2i + 1 (i < r) are folded onto leaf i, which 2i stands for;
// the others are leaves r … 2^k - 1.
struct Fold {
  explicit Fold(int member_count);

  int rounds = 0;      // k
  int leaf_count = 1;  // 2^k
  int pair_count = 0;  // r

  bool gives(int member) const { return member < 2 * pair_count && member % 2 == 1; }  // its value goes to member - 1
  bool takes(int member) const { return member < 2 * pair_count && member % 2 == 0; }
  int leaf_of(int member) const { return member < 2 * pair_count ? member / 2 : member - pair_count; }
  int member_of(int leaf) const { return leaf < pair_count ? 2 * leaf : leaf + pair_count; }
  bool folds() const { return pair_count > 0; }
};

}  // namespace halay::collective
