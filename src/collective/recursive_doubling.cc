// recursive_doubling allreduce. Canonical.
// Members beyond a power of two are folded first: each gives its values to the one below it and gets the result at the
// end. The 2^k others exchange everything with the one at distance 1, 2, 4 …, in the accumulator type.
// n elements, E bytes each, A in the accumulator type, p = 2^k + r:
//   rounds  k; k + 1 if 0 < 2r <= 2^k, since then no leaf that was folded is opposite another; else k + 2
//   sent    k * n * A; and n * E more by who took a fold, n * A in all by who gave
//   cost    rounds * alpha + k n A (beta + gamma) + [r > 0] (n A (beta + gamma) + n E beta)
#include "collective/builder.h"
#include "collective/canonical.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

int rounds_of(const Fold& fold) {
  if (!fold.folds()) return fold.rounds;
  return fold.rounds + (2 * fold.pair_count <= fold.leaf_count ? 1 : 2);
}

double cost(const Problem& problem, const Surroundings& surroundings) {
  const Fold fold(problem.member_count);
  const LinkCosts& link = surroundings.link;
  const auto narrow = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  const auto wide = static_cast<double>(problem.count_elems * bytes_of(accumulator_of(problem.dtype)));
  double seconds = rounds_of(fold) * link.alpha + fold.rounds * wide * (link.beta + link.gamma);
  if (fold.folds()) seconds += wide * (link.beta + link.gamma) + narrow * link.beta;
  return seconds;
}

// One exchange: with whom, whether mine goes to it too, and who is left in the tree.
struct Hop {
  int peer;
  bool sends;
  bool left;
};

std::vector<Hop> hops_of(const Fold& fold, int me) {
  std::vector<Hop> hops;
  if (fold.takes(me)) hops.push_back({me + 1, false, true});
  const int leaf = fold.leaf_of(me);
  for (int distance = 1; distance < fold.leaf_count; distance *= 2) {
    hops.push_back({fold.member_of(leaf ^ distance), true, (leaf & distance) == 0});
  }
  return hops;
}

Schedule plan_recursive_doubling(const Problem& problem, const Surroundings& surroundings) {
  const Fold fold(problem.member_count);
  const int me = problem.me;
  const bool wide = widens(problem.dtype);
  const Part all{0, problem.count_elems};
  const size_t chunk = chunk_elems_of(surroundings, bytes_of(accumulator_of(problem.dtype)));
  const size_t chunk_count = chunks_in(all.count, chunk);
  const auto rounds = static_cast<uint32_t>(rounds_of(fold));
  Builder builder("recursive_doubling", problem);
  if (!wide) builder.let_acc_be_output();
  std::vector<Post> sent(chunk_count, kNoPost), received(chunk_count, kNoPost);

  if (fold.gives(me)) {
    for (size_t c = 0; c < chunk_count; ++c) {
      const Part part = chunk_of(all, c, chunk);
      builder.load(acc(part), input(part));
      sent[c] = builder.send(me - 1, acc(part));
    }
    for (size_t c = 0; c < chunk_count; ++c) {
      builder.wait(sent[c]);
      received[c] = builder.recv(me - 1, output(chunk_of(all, c, chunk)));
    }
    builder.wait_all(received);
    return builder.take(rounds);
  }

  const auto partial_of_peer = [&](const Part& part) {
    return wide ? acc({all.count + part.offset, part.count}) : staging(part);
  };
  const std::vector<Hop> hops = hops_of(fold, me);
  const auto begin = [&](size_t h, size_t c) {
    const Part part = chunk_of(all, c, chunk);
    received[c] = builder.recv(hops[h].peer, partial_of_peer(part));
    if (hops[h].sends) sent[c] = builder.send(hops[h].peer, acc(part));
  };
  for (size_t c = 0; c < chunk_count; ++c) {
    const Part part = chunk_of(all, c, chunk);
    builder.load(acc(part), input(part));
    begin(0, c);
  }
  for (size_t h = 0; h < hops.size(); ++h) {
    for (size_t c = 0; c < chunk_count; ++c) {
      const Part part = chunk_of(all, c, chunk);
      builder.wait(received[c]);
      builder.wait(sent[c]);
      if (hops[h].left) {
        builder.reduce(acc(part), acc(part), partial_of_peer(part));
      } else {
        builder.reduce(acc(part), partial_of_peer(part), acc(part));
      }
      if (h + 1 < hops.size()) begin(h + 1, c);
    }
  }
  for (size_t c = 0; c < chunk_count; ++c) {
    const Part part = chunk_of(all, c, chunk);
    builder.finish(output(part), acc(part));
    if (fold.takes(me)) sent[c] = builder.send(me + 1, output(part));
  }
  builder.wait_all(sent);
  return builder.take(rounds);
}

}  // namespace

Algorithm recursive_doubling_row() {
  return {"recursive_doubling", OpKind::allreduce, true, false, fits, cost, plan_recursive_doubling};
}

}  // namespace halay::collective
