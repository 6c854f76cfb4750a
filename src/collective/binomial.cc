// binomial broadcast: the root sends to the members at distance 2^j, the larger first, and each passes it on in its own
// subtree. Chunk by chunk: a chunk is passed on while the next one comes.
// n elements of E bytes, p members:
//   rounds  the most ones in the binary form of any number below p: log2 p for powers of two
//   sent    n E for each child
//   cost    ceil(log2 p) (alpha + n E beta): the root sends everything to so many children and is the slowest
#include "collective/binomial.h"

#include <algorithm>
#include <bit>

#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {

BinomialTree::BinomialTree(int members, int root_member, int this_member)
    : member_count(members), root(root_member), me(before(this_member, root_member, members)) {
  if (me > 0) parent = me & (me - 1);
  const int reach = me > 0 ? me & -me : 1 << ceil_log2(member_count);
  for (int distance = reach / 2; distance >= 1; distance /= 2) {
    if (me + distance < member_count) children.push_back(me + distance);
  }
}

int BinomialTree::subtree_of(int virtual_member) const {
  if (virtual_member == 0) return member_count;
  return std::min(virtual_member & -virtual_member, member_count - virtual_member);
}

int ceil_log2(int member_count) {
  int rounds = 0;
  while ((1 << rounds) < member_count) ++rounds;
  return rounds;
}

int binomial_depth(int member_count) {
  int most = 0;
  for (int v = 0; v < member_count; ++v) most = std::max(most, std::popcount(static_cast<unsigned>(v)));
  return most;
}

namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const auto bytes = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  return ceil_log2(problem.member_count) * (surroundings.link.alpha + bytes * surroundings.link.beta);
}

Schedule plan_binomial(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("binomial", problem);
  const BinomialTree tree(problem.member_count, problem.root, problem.me);
  const bool is_root = tree.parent < 0;
  const Part all{0, problem.count_elems};
  const size_t chunk = chunk_elems_of(surroundings, bytes_of(problem.dtype));
  const size_t chunk_count = chunks_in(all.count, chunk);
  std::vector<Post> received(chunk_count, kNoPost), sent;
  if (!is_root) {
    for (size_t c = 0; c < chunk_count; ++c) {
      received[c] = builder.recv(tree.member_of(tree.parent), output(chunk_of(all, c, chunk)));
    }
  }
  const size_t in_flight = 4 * tree.children.size();
  for (size_t c = 0; c < chunk_count; ++c) {
    const Part part = chunk_of(all, c, chunk);
    builder.wait(received[c]);
    for (const int child : tree.children) {
      if (sent.size() >= in_flight) builder.wait(sent[sent.size() - in_flight]);
      sent.push_back(builder.send(tree.member_of(child), is_root ? input(part) : output(part)));
    }
    if (is_root) builder.copy(output(part), input(part));
  }
  builder.wait_all(sent);
  return builder.take(static_cast<uint32_t>(binomial_depth(problem.member_count)));
}

}  // namespace

Algorithm binomial_row() { return {"binomial", OpKind::broadcast, true, false, fits, cost, plan_binomial}; }

}  // namespace halay::collective
