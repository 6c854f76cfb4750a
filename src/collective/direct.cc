// direct allreduce and reducescatter: everybody sends each owner its part of the input, in the narrow type; the owner
// evaluates the canonical tree over all p in one pass, rounds once, and (allreduce) sends the result to all. Canonical.
//
// Chunk by chunk: contributions run two chunks ahead of what is reduced, and (allreduce) a further one is sent to an
// owner only when its result of an earlier chunk has come, so that private memory stays at two chunks a peer.
//
// n elements of E bytes, p members, own(m) the part of member m:
//   rounds  2 (reducescatter 1)
//   sent    (n - own(me)) E, and (p - 1) own(me) E more for the result
//   cost    2 alpha + 2 (p - 2) alpha / 4 + 2 (p - 1) o E beta (1 + (p - 2) / 64) + p o E gamma / c,
//           o the largest part and c its chunks; reducescatter half of the first three. Assumed: a quarter of alpha for
//           a message beside another, 1/64 for each further flow into one member at the same time, and that but for
//           the last chunk adding goes on beside sending.
#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

constexpr size_t kAhead = 2;

std::vector<Part> owned_parts(const Problem& problem) {
  if (problem.kind == OpKind::reducescatter) return parts_of(problem.counts);
  return even_parts(problem.count_elems, problem.member_count);
}

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.link;
  const double others = problem.member_count - 1;
  const size_t owned = largest(owned_parts(problem));
  const auto owned_bytes = static_cast<double>(owned * bytes_of(problem.dtype));
  const double chunks = std::max<double>(1, chunks_in(owned, chunk_elems_of(surroundings, bytes_of(problem.dtype))));
  const double half =
      link.alpha + (others - 1) * link.alpha / 4 + others * owned_bytes * link.beta * (1 + (others - 1) / 64);
  return (problem.kind == OpKind::allreduce ? 2 : 1) * half + (others + 1) * owned_bytes * link.gamma / chunks;
}

class Direct {
 public:
  Direct(const Problem& problem, const Surroundings& surroundings)
      : members_(problem.member_count),
        me_(problem.me),
        gathers_(problem.kind == OpKind::allreduce),
        parts_(owned_parts(problem)),
        chunk_(std::clamp<size_t>(largest(parts_), 1, chunk_elems_of(surroundings, bytes_of(problem.dtype)))),
        chunk_count_(chunks_in(largest(parts_), chunk_)),
        builder_("direct", problem),
        contributions_(kAhead * others(), kNoPost),
        sources_(kAhead * others(), kNoPost),
        results_(kAhead * others(), kNoPost),
        shared_(kAhead * others(), kNoPost),
        regions_(static_cast<size_t>(members_)) {
    builder_.reserve(chunk_count_ * (gathers_ ? 8 : 4) * others() + chunk_count_);
  }

  Schedule plan() && {
    for (size_t c = 0; c < kAhead; ++c) expect_contributions(c);
    for (size_t c = 0; c < kAhead; ++c) contribute(c);
    for (size_t c = 0; c < chunk_count_; ++c) {
      own(c);
      if (gathers_) share(c);
      for (size_t i = 0; i < others(); ++i) builder_.wait(contributions_[slot(c, i)]);
      if (gathers_) expect_results(c);
      expect_contributions(c + kAhead);
      if (gathers_ && c > 0) await_results(c - 1);
      contribute(c + kAhead);
    }
    builder_.wait_all(results_);
    builder_.wait_all(shared_);
    return builder_.take(gathers_ ? 2 : 1);
  }

 private:
  size_t others() const { return static_cast<size_t>(members_ - 1); }
  // Peers in turn, starting behind me, so that not all begin with the same one.
  int peer(size_t i) const { return after(me_, static_cast<int>(i) + 1, members_); }
  size_t slot(size_t c, size_t i) const { return c % kAhead * others() + i; }
  Part chunk(int owner, size_t c) const { return chunk_of(parts_[static_cast<size_t>(owner)], c, chunk_); }
  Region source(size_t c, size_t i, size_t count_elems) const { return staging({slot(c, i) * chunk_, count_elems}); }
  Region result(const Part& part) const {
    const size_t start = gathers_ ? 0 : parts_[static_cast<size_t>(me_)].offset;
    return output({part.offset - start, part.count});
  }

  void expect_contributions(size_t c) {
    const Part mine = chunk(me_, c);
    if (mine.count == 0) return;
    for (size_t i = 0; i < others(); ++i) sources_[slot(c, i)] = builder_.recv(peer(i), source(c, i, mine.count));
  }

  void contribute(size_t c) {
    for (size_t i = 0; i < others(); ++i) {
      const Part theirs = chunk(peer(i), c);
      if (theirs.count > 0) contributions_[slot(c, i)] = builder_.send(peer(i), input(theirs));
    }
  }

  void own(size_t c) {
    const Part mine = chunk(me_, c);
    if (mine.count == 0) return;
    regions_[static_cast<size_t>(me_)] = input(mine);
    for (size_t i = 0; i < others(); ++i) {
      builder_.wait(sources_[slot(c, i)]);
      regions_[static_cast<size_t>(peer(i))] = source(c, i, mine.count);
    }
    builder_.reduce_all(result(mine), regions_);
  }

  void share(size_t c) {
    const Part mine = chunk(me_, c);
    for (size_t i = 0; i < others(); ++i) {
      builder_.wait(shared_[slot(c, i)]);
      if (mine.count > 0) shared_[slot(c, i)] = builder_.send(peer(i), result(mine));
    }
  }

  // Comes after my contribution to the same elements has left: in place, it lies where the result will.
  void expect_results(size_t c) {
    for (size_t i = 0; i < others(); ++i) {
      const Part theirs = chunk(peer(i), c);
      if (theirs.count > 0) results_[slot(c, i)] = builder_.recv(peer(i), output(theirs));
    }
  }

  void await_results(size_t c) {
    for (size_t i = 0; i < others(); ++i) builder_.wait(results_[slot(c, i)]);
  }

  const int members_;
  const int me_;
  const bool gathers_;
  const std::vector<Part> parts_;
  const size_t chunk_;
  const size_t chunk_count_;
  Builder builder_;
  std::vector<Post> contributions_, sources_, results_, shared_;  // of two chunks, by slot
  std::vector<Region> regions_;
};

Schedule plan_direct(const Problem& problem, const Surroundings& surroundings) {
  return Direct(problem, surroundings).plan();
}

}  // namespace

Algorithm direct_allreduce_row() { return {"direct", OpKind::allreduce, true, false, fits, cost, plan_direct}; }
Algorithm direct_reducescatter_row() { return {"direct", OpKind::reducescatter, true, false, fits, cost, plan_direct}; }

}  // namespace halay::collective
