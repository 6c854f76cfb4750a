// shm_owner allreduce: each member copies a chunk of its input into its window (but the part it owns), reduces the part
// that it owns over all windows, and copies the parts of the others out of theirs. Canonical.
//
// Filling runs a chunk ahead of reducing, and that a chunk ahead of copying out, so that nobody waits for who is a
// little late. An owner's result lies in its own slot, in place of what nobody else reads. Who has reduced c has filled
// c + 1, so kFilled is needed for the first chunk only. Four slots are enough: filling chunk c comes after copying out
// c - 3, which waited until all had reduced c - 3, which they did after copying out c - 4.
//
// n elements of E bytes, p members, c chunks:
//   rounds  2 (hand-overs; no messages)
//   sent    0
//   cost    (c + 1) h + n E (2 gamma + (p - 1) / p (2 beta + gamma)), h one hand-over; costs of windows, see
//           shm_everyone.cc
#include "collective/rows.h"
#include "collective/slots.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings& surroundings) {
  return problem.member_count > 1 && Slots(problem, surroundings).elems > 0;
}

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.window_link;
  const double share = 1.0 - 1.0 / problem.member_count;
  const auto chunks = static_cast<double>(chunks_in(problem.count_elems, Slots(problem, surroundings).elems));
  const auto bytes = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  return (chunks + 1) * hand_over_seconds(problem, surroundings) +
         bytes * (2 * link.gamma + share * (2 * link.beta + link.gamma));
}

class Owner {
 public:
  Owner(const Problem& problem, const Surroundings& surroundings)
      : members_(problem.member_count),
        me_(problem.me),
        line_(kLineBytes / bytes_of(problem.dtype)),
        all_{0, problem.count_elems},
        slots_(problem, surroundings),
        chunk_count_(chunks_in(all_.count, slots_.elems)),
        builder_("shm_owner", problem),
        sources_(static_cast<size_t>(members_)) {
    builder_.reserve(chunk_count_ * (3 * static_cast<size_t>(members_) + 4));
  }

  Schedule plan() && {
    fill(0);
    for (size_t c = 0; c < chunk_count_; ++c) {
      fill(c + 1);
      if (c > 0) copy_out(c - 1);
      reduce(c);
    }
    if (chunk_count_ > 0) copy_out(chunk_count_ - 1);
    return builder_.take(2, static_cast<uint32_t>(chunk_count_));
  }

 private:
  // The part of chunk c that `member` owns, counted from the chunk's start.
  Part owned(int member, size_t c) const {
    const size_t count = chunk_of(all_, c, slots_.elems).count;
    size_t each = (count + static_cast<size_t>(members_) - 1) / static_cast<size_t>(members_);
    if (each >= line_) each = (each + line_ - 1) / line_ * line_;
    return chunk_of({0, count}, static_cast<size_t>(member), each);
  }
  Part of_tensor(const Part& part, size_t c) const { return {c * slots_.elems + part.offset, part.count}; }
  Part of_window(const Part& part, size_t c) const { return {slots_.offset(c) + part.offset, part.count}; }

  void fill(size_t c) {
    if (c >= chunk_count_) return;
    const size_t count = chunk_of(all_, c, slots_.elems).count;
    const Part mine = owned(me_, c);
    const size_t end = mine.offset + mine.count;
    for (const Part& part : {Part{0, mine.offset}, Part{end, count - end}}) {
      builder_.copy(window(me_, of_window(part, c)), input(of_tensor(part, c)));
    }
    if (c == 0) builder_.signal(kFilled, 1);
  }

  void reduce(size_t c) {
    if (c == 0) builder_.wait_flags(kFilled, 1);
    const Part mine = owned(me_, c);
    for (int member = 0; member < members_; ++member) {
      sources_[static_cast<size_t>(member)] =
          member == me_ ? input(of_tensor(mine, c)) : window(member, of_window(mine, c));
    }
    builder_.reduce_all(window(me_, of_window(mine, c)), sources_);
    builder_.signal(kReduced, static_cast<uint32_t>(c + 1));
    builder_.copy(output(of_tensor(mine, c)), window(me_, of_window(mine, c)));
  }

  void copy_out(size_t c) {
    for (int distance = 1; distance < members_; ++distance) {
      const int owner = after(me_, distance, members_);
      const Part part = owned(owner, c);
      builder_.wait_flag(owner, kReduced, static_cast<uint32_t>(c + 1));
      builder_.copy(output(of_tensor(part, c)), window(owner, of_window(part, c)));
    }
  }

  const int members_;
  const int me_;
  const size_t line_;
  const Part all_;
  const Slots slots_;
  const size_t chunk_count_;
  Builder builder_;
  std::vector<Region> sources_;
};

Schedule plan_owner(const Problem& problem, const Surroundings& surroundings) {
  return Owner(problem, surroundings).plan();
}

}  // namespace

Algorithm shm_owner_row() { return {"shm_owner", OpKind::allreduce, true, true, fits, cost, plan_owner}; }

}  // namespace halay::collective
