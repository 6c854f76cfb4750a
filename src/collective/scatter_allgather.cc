// scatter_allgather broadcast: the root's data go down the binomial tree in parts, each member keeping those of its
// subtree; then the parts walk round a ring, but to members that have them from the tree.
// n elements of E bytes in p parts of about n / p, members counted from the root:
//   rounds  p - 1: the way of the root's own part
//   sent    tree: the parts of each child's subtree; ring: the parts that the next member lacks
//   cost    (ceil(log2 p) + p - 1) alpha + 2 (p - 1) / p n E beta
#include "collective/binomial.h"
#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const double others = problem.member_count - 1;
  const auto bytes = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  return (ceil_log2(problem.member_count) + others) * surroundings.link.alpha +
         2 * others / (others + 1) * bytes * surroundings.link.beta;
}

class ScatterAllgather {
 public:
  ScatterAllgather(const Problem& problem, const Surroundings& surroundings)
      : tree_(problem.member_count, problem.root, problem.me),
        parts_(even_parts(problem.count_elems, problem.member_count)),
        chunk_(std::clamp<size_t>(largest(parts_), 1, chunk_elems_of(surroundings, bytes_of(problem.dtype)))),
        chunk_count_(chunks_in(largest(parts_), chunk_)),
        builder_("scatter_allgather", problem),
        received_(parts_.size() * chunk_count_, kNoPost) {}

  Schedule plan() && {
    // Every transfer into output has its own place, so all are expected at once: those of the tree, then those of the
    // ring.
    if (tree_.parent >= 0) {
      for_parts(tree_.me, [&](int part) { expect(tree_.parent, part); });
      for_ring(tree_.me, [&](int part) { expect(ring_before(), part); });
    }
    for (const int child : tree_.children) {
      for_parts(child, [&](int part) { pass_on(child, part); });
    }
    for_ring(ring_after(), [&](int part) { pass_on(ring_after(), part); });
    if (tree_.parent < 0) {
      for (const Part& part : parts_) {
        for (size_t c = 0; c < chunk_count_; ++c) {
          builder_.copy(output(chunk_of(part, c, chunk_)), input(chunk_of(part, c, chunk_)));
        }
      }
    }
    builder_.wait_all(received_);
    builder_.wait_all(sent_);
    return builder_.take(static_cast<uint32_t>(tree_.member_count - 1));
  }

 private:
  int ring_after() const { return (tree_.me + 1) % tree_.member_count; }
  int ring_before() const { return tree_.me - 1; }
  bool has_from_tree(int member, int part) const { return part >= member && part < member + tree_.subtree_of(member); }

  // The parts that a member has from the tree.
  template <typename F>
  void for_parts(int member, F&& each) {
    for (int part = member; part < member + tree_.subtree_of(member); ++part) each(part);
  }
  // Those that it gets on the ring from the one before it, in order: that one's own part, then what came to it.
  template <typename F>
  void for_ring(int member, F&& each) {
    const int members = tree_.member_count;
    for (int step = 0; step + 1 < members; ++step) {
      const int part = before(member, step + 1, members);
      if (!has_from_tree(member, part)) each(part);
    }
  }

  void expect(int peer, int part) {
    for (size_t c = 0; c < chunk_count_; ++c) {
      const Part range = chunk_of(parts_[static_cast<size_t>(part)], c, chunk_);
      if (range.count > 0) received_[post_of(part, c)] = builder_.recv(tree_.member_of(peer), output(range));
    }
  }

  void pass_on(int peer, int part) {
    for (size_t c = 0; c < chunk_count_; ++c) {
      const Part range = chunk_of(parts_[static_cast<size_t>(part)], c, chunk_);
      if (range.count == 0) continue;
      builder_.wait(received_[post_of(part, c)]);
      sent_.push_back(builder_.send(tree_.member_of(peer), tree_.parent < 0 ? input(range) : output(range)));
    }
  }

  size_t post_of(int part, size_t c) const { return static_cast<size_t>(part) * chunk_count_ + c; }

  const BinomialTree tree_;
  const std::vector<Part> parts_;
  const size_t chunk_;
  const size_t chunk_count_;
  Builder builder_;
  std::vector<Post> received_, sent_;
};

Schedule plan_scatter_allgather(const Problem& problem, const Surroundings& surroundings) {
  return ScatterAllgather(problem, surroundings).plan();
}

}  // namespace

Algorithm scatter_allgather_row() {
  return {"scatter_allgather", OpKind::broadcast, true, false, fits, cost, plan_scatter_allgather};
}

}  // namespace halay::collective
