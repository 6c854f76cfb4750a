// A set of members of one process set, with its size at hand.
// Thread: any (value).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halay::negotiate {

class MemberSet {
 public:
  explicit MemberSet(int set_size) : words_((static_cast<size_t>(set_size) + 63) / 64) {}

  bool test(int member) const { return words_[word(member)] & bit(member); }
  void set(int member) {
    if (test(member)) return;
    words_[word(member)] |= bit(member);
    ++count_;
  }
  void clear() {
    std::fill(words_.begin(), words_.end(), 0);
    count_ = 0;
  }
  int count() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool operator==(const MemberSet&) const = default;

  // Ascending.
  std::vector<int> members() const {
    std::vector<int> out;
    for (int member = 0; static_cast<size_t>(member) < words_.size() * 64; ++member) {
      if (test(member)) out.push_back(member);
    }
    return out;
  }

 private:
  static size_t word(int member) { return static_cast<size_t>(member) / 64; }
  static uint64_t bit(int member) { return uint64_t{1} << (member % 64); }

  std::vector<uint64_t> words_;
  int count_ = 0;
};

}  // namespace halay::negotiate
