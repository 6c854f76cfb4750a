// shm_owner_scatter reducescatter: each member copies into its window, chunk by chunk, what the others own of its
// input; each owner reduces its own part over all windows straight into the output. Canonical. Parts may differ or be
// empty. A slot holds a chunk for each owner.
//
// n elements of E bytes in all, p members, c chunks of the largest part m:
//   rounds  1 (hand-overs; no messages)
//   sent    0
//   cost    c h + n E gamma + p m E (beta + gamma), h one hand-over; costs of windows, see shm_everyone.cc
#include "collective/rows.h"
#include "collective/slots.h"

namespace halay::collective {
namespace {

// Elements of one owner in a slot.
size_t chunk_in(const Problem& problem, const Surroundings& surroundings) {
  const Slots slots(problem, surroundings);
  const size_t line = kLineBytes / bytes_of(problem.dtype);
  const size_t chunk = slots.elems / static_cast<size_t>(problem.member_count);
  return chunk > line ? chunk - chunk % line : chunk;
}

bool fits(const Problem& problem, const Surroundings& surroundings) {
  return problem.member_count > 1 && chunk_in(problem, surroundings) > 0;
}

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.window_link;
  const auto bytes_each = static_cast<double>(bytes_of(problem.dtype));
  size_t total = 0;
  for (const size_t count : problem.counts) total += count;
  const size_t part = largest(parts_of(problem.counts));
  return static_cast<double>(chunks_in(part, chunk_in(problem, surroundings))) *
             hand_over_seconds(problem, surroundings) +
         static_cast<double>(total) * bytes_each * link.gamma +
         static_cast<double>(part) * problem.member_count * bytes_each * (link.beta + link.gamma);
}

Schedule plan_owner_scatter(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("shm_owner_scatter", problem);
  const Slots slots(problem, surroundings);
  const int members = problem.member_count, me = problem.me;
  const size_t chunk = chunk_in(problem, surroundings);
  const std::vector<Part> parts = parts_of(problem.counts);
  const size_t chunk_count = chunks_in(largest(parts), chunk);
  const auto part_of = [&](int owner, size_t c) { return chunk_of(parts[static_cast<size_t>(owner)], c, chunk); };
  const auto place = [&](int owner, size_t c, size_t count_elems) {
    return Part{slots.offset(c) + static_cast<size_t>(owner) * chunk, count_elems};
  };
  const auto fill = [&](size_t c) {
    if (c >= chunk_count) return;
    for (int distance = 1; distance < members; ++distance) {
      const int owner = after(me, distance, members);
      const Part part = part_of(owner, c);
      builder.copy(window(me, place(owner, c, part.count)), input(part));
    }
    builder.signal(kFilled, static_cast<uint32_t>(c + 1));
  };
  std::vector<Region> sources(static_cast<size_t>(members));
  fill(0);
  for (size_t c = 0; c < chunk_count; ++c) {
    fill(c + 1);
    builder.wait_flags(kFilled, static_cast<uint32_t>(c + 1));
    const Part mine = part_of(me, c);
    for (int member = 0; member < members; ++member) {
      sources[static_cast<size_t>(member)] = member == me ? input(mine) : window(member, place(me, c, mine.count));
    }
    builder.reduce_all(output({mine.offset - parts[static_cast<size_t>(me)].offset, mine.count}), sources);
  }
  return builder.take(1, static_cast<uint32_t>(chunk_count));
}

}  // namespace

Algorithm shm_owner_scatter_row() {
  return {"shm_owner_scatter", OpKind::reducescatter, true, true, fits, cost, plan_owner_scatter};
}

}  // namespace halay::collective
