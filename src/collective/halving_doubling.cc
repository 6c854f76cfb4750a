// halving_doubling allreduce: vector halving with doubling distance, so that the canonical tree is kept, then the way
// back in the narrow type. Canonical.
//
// Members beyond a power of two are folded first, as in recursive_doubling. In round j the 2^k others split the range
// they still share with the one at distance 2^j, give one half of their partial sums away and reduce the other. After k
// rounds each has the result of its own n / 2^k elements; the rounds are walked back, receiving what was given away.
//
// n elements, E bytes each, A in the accumulator type, p = 2^k + r; f = 1 - 1 / 2^k:
//   rounds  2k, and 2 more if r > 0
//   sent    f n (A + E) to within k elements; and n * E more by who took a fold, n * A in all by who gave
//   cost    2 (k + [r > 0]) alpha + n A gamma (loading) + f n (A (beta + gamma) + E beta)
//           + [r > 0] (n A (beta + gamma) + n E beta)
#include "collective/builder.h"
#include "collective/canonical.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const Fold fold(problem.member_count);
  const LinkCosts& link = surroundings.link;
  const auto narrow = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  const auto wide = static_cast<double>(problem.count_elems * bytes_of(accumulator_of(problem.dtype)));
  const double share = 1.0 - 1.0 / fold.leaf_count;
  double seconds =
      2 * fold.rounds * link.alpha + wide * link.gamma + share * (wide * (link.beta + link.gamma) + narrow * link.beta);
  if (fold.folds()) seconds += 2 * link.alpha + wide * (link.beta + link.gamma) + narrow * link.beta;
  return seconds;
}

// A round: with whom, what stays here and what goes there.
struct Level {
  int peer;
  bool left;
  Part keep, give;
};

std::vector<Level> levels_of(const Fold& fold, int me, size_t count_elems) {
  std::vector<Level> levels;
  const int leaf = fold.leaf_of(me);
  Part shared{0, count_elems};
  for (int distance = 1; distance < fold.leaf_count; distance *= 2) {
    const size_t half = (shared.count + 1) / 2;
    const Part low{shared.offset, half}, high{shared.offset + half, shared.count - half};
    const bool left = (leaf & distance) == 0;
    levels.push_back({fold.member_of(leaf ^ distance), left, left ? low : high, left ? high : low});
    shared = levels.back().keep;
  }
  return levels;
}

class HalvingDoubling {
 public:
  HalvingDoubling(const Problem& problem, const Surroundings& surroundings)
      : fold_(problem.member_count),
        me_(problem.me),
        wide_(widens(problem.dtype)),
        all_{0, problem.count_elems},
        chunk_(chunk_elems_of(surroundings, bytes_of(accumulator_of(problem.dtype)))),
        builder_("halving_doubling", problem) {
    if (!wide_) builder_.let_acc_be_output();
  }

  Schedule plan() && {
    for_chunks(all_, [&](const Part& part) { builder_.load(acc(part), input(part)); });
    if (fold_.gives(me_)) {
      give_fold();
    } else {
      if (fold_.takes(me_)) exchange(me_ + 1, all_, true, {});
      const std::vector<Level> levels = levels_of(fold_, me_, all_.count);
      for (const Level& level : levels) exchange(level.peer, level.keep, level.left, level.give);
      builder_.wait_all(sent_);  // acc may be output, where the results come
      sent_.clear();
      for_chunks(levels.back().keep, [&](const Part& part) { builder_.finish(output(part), acc(part)); });
      for (auto level = levels.rbegin(); level != levels.rend(); ++level) return_from(*level);
      if (fold_.takes(me_)) send_all(me_ + 1, all_, Buffer::output);
      builder_.wait_all(sent_);
    }
    return builder_.take(static_cast<uint32_t>(2 * fold_.rounds + (fold_.folds() ? 2 : 0)));
  }

 private:
  template <typename F>
  void for_chunks(const Part& part, F&& each) {
    for (size_t c = 0; c < chunks_in(part.count, chunk_); ++c) each(chunk_of(part, c, chunk_));
  }

  Region partial_of_peer(const Part& part) const {
    return wide_ ? acc({all_.count + part.offset, part.count}) : staging(part);
  }

  void send_all(int peer, const Part& range, Buffer buffer) {
    for_chunks(range, [&](const Part& part) {
      sent_.push_back(builder_.send(peer, buffer == Buffer::acc ? acc(part) : output(part)));
    });
  }

  std::vector<Post> expect_results(int peer, const Part& range) {
    std::vector<Post> received;
    for_chunks(range, [&](const Part& part) { received.push_back(builder_.recv(peer, output(part))); });
    return received;
  }

  // Receives partial sums of `range` and adds them, chunk by chunk; meanwhile those of `give` go the other way.
  void exchange(int peer, const Part& range, bool left, const Part& give) {
    std::vector<Post> received;
    for_chunks(range, [&](const Part& part) { received.push_back(builder_.recv(peer, partial_of_peer(part))); });
    send_all(peer, give, Buffer::acc);
    size_t next = 0;
    for_chunks(range, [&](const Part& part) {
      builder_.wait(received[next++]);
      if (left) {
        builder_.reduce(acc(part), acc(part), partial_of_peer(part));
      } else {
        builder_.reduce(acc(part), partial_of_peer(part), acc(part));
      }
    });
  }

  void give_fold() {
    send_all(me_ - 1, all_, Buffer::acc);
    builder_.wait_all(sent_);  // acc may be output
    std::vector<Post> received = expect_results(me_ - 1, all_);
    builder_.wait_all(received);
  }

  void return_from(const Level& level) {
    std::vector<Post> received = expect_results(level.peer, level.give);
    send_all(level.peer, level.keep, Buffer::output);
    builder_.wait_all(received);
  }

  const Fold fold_;
  const int me_;
  const bool wide_;
  const Part all_;
  const size_t chunk_;
  Builder builder_;
  std::vector<Post> sent_;
};

Schedule plan_halving_doubling(const Problem& problem, const Surroundings& surroundings) {
  return HalvingDoubling(problem, surroundings).plan();
}

}  // namespace

Algorithm halving_doubling_row() {
  return {"halving_doubling", OpKind::allreduce, true, false, fits, cost, plan_halving_doubling};
}

}  // namespace halay::collective
