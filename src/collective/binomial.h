// The binomial tree of broadcasts, over virtual members: 0 is the root, the others follow in turn. Private to this
// room. Thread: any (values).
#pragma once

#include <vector>

namespace halay::collective {

struct BinomialTree {
  BinomialTree(int member_count, int root, int me);

  int member_of(int virtual_member) const { return (virtual_member + root) % member_count; }

  int member_count, root;
  int me;                     // virtual
  int parent = -1;            // virtual; -1: I am the root
  std::vector<int> children;  // virtual, the largest subtree first
  // How many members the subtree below a virtual member has, itself included: they are the ones from it on.
  int subtree_of(int virtual_member) const;
};

// The most messages between the root and any member.
int binomial_depth(int member_count);
int ceil_log2(int member_count);

}  // namespace halay::collective
