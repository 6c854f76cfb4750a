// shm_gather allgather: each member copies its part into its window, chunk by chunk, and the others copy it out. Parts
// may differ or be empty.
//
// p members, the largest part of m elements of E bytes, c chunks of it:
//   rounds  1 (hand-overs; no messages)
//   sent    0
//   cost    c h + m E (2 gamma + (p - 1) (beta + gamma)), h one hand-over; costs of windows, see shm_everyone.cc
#include "collective/rows.h"
#include "collective/slots.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings& surroundings) {
  return problem.member_count > 1 && Slots(problem, surroundings).elems > 0;
}

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.window_link;
  const double others = problem.member_count - 1;
  const size_t part = largest(parts_of(problem.counts));
  const auto chunks = static_cast<double>(chunks_in(part, Slots(problem, surroundings).elems));
  const auto bytes = static_cast<double>(part * bytes_of(problem.dtype));
  return chunks * hand_over_seconds(problem, surroundings) +
         bytes * (2 * link.gamma + others * (link.beta + link.gamma));
}

Schedule plan_gather(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("shm_gather", problem);
  const Slots slots(problem, surroundings);
  const int members = problem.member_count, me = problem.me;
  const std::vector<Part> parts = parts_of(problem.counts);
  const size_t chunk_count = chunks_in(largest(parts), slots.elems);
  const Part mine = parts[static_cast<size_t>(me)];
  const auto fill = [&](size_t c) {
    if (c >= chunk_count) return;
    const Part from = chunk_of({0, mine.count}, c, slots.elems);
    builder.copy(window(me, {slots.offset(c), from.count}), input(from));
    builder.signal(kFilled, static_cast<uint32_t>(c + 1));
  };
  fill(0);
  for (size_t c = 0; c < chunk_count; ++c) {
    fill(c + 1);
    builder.copy(output(chunk_of(mine, c, slots.elems)), input(chunk_of({0, mine.count}, c, slots.elems)));
    for (int distance = 1; distance < members; ++distance) {
      const int peer = after(me, distance, members);
      const Part part = chunk_of(parts[static_cast<size_t>(peer)], c, slots.elems);
      builder.wait_flag(peer, kFilled, static_cast<uint32_t>(c + 1));
      builder.copy(output(part), window(peer, {slots.offset(c), part.count}));
    }
  }
  return builder.take(1, static_cast<uint32_t>(chunk_count));
}

}  // namespace

Algorithm shm_gather_row() { return {"shm_gather", OpKind::allgather, true, true, fits, cost, plan_gather}; }

}  // namespace halay::collective
