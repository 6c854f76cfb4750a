// shm_everyone and shm_inline allreduce: each member copies its input into its window, a chunk at a time, and everybody
// reduces all windows. Canonical. shm_inline is the same for one chunk that fits the line of the tiny path; execute has
// a hand-written form of it with the same result.
//
// n elements of E bytes, p members, c chunks:
//   rounds  1 (hand-overs; no messages)
//   sent    0
//   cost    c h + n E (gamma + (p - 1) (beta + gamma)), h one hand-over: alpha (1 + (p - 2) / 4); costs of windows.
//           shm_inline: h
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
  const auto chunks = static_cast<double>(chunks_in(problem.count_elems, Slots(problem, surroundings).elems));
  const auto bytes = static_cast<double>(problem.count_elems * bytes_of(problem.dtype));
  return chunks * hand_over_seconds(problem, surroundings) + bytes * (link.gamma + others * (link.beta + link.gamma));
}

Schedule plan_named(std::string_view name, const Problem& problem, const Surroundings& surroundings) {
  Builder builder(name, problem);
  const Slots slots(problem, surroundings);
  const Part all{0, problem.count_elems};
  const size_t chunk_count = chunks_in(all.count, slots.elems);
  builder.reserve(chunk_count * (2 + static_cast<size_t>(problem.member_count)));
  std::vector<Region> sources(static_cast<size_t>(problem.member_count));
  const auto fill = [&](size_t c) {
    if (c >= chunk_count) return;
    const Part part = chunk_of(all, c, slots.elems);
    builder.copy(window(problem.me, {slots.offset(c), part.count}), input(part));
    builder.signal(kFilled, static_cast<uint32_t>(c + 1));
  };
  fill(0);
  for (size_t c = 0; c < chunk_count; ++c) {
    fill(c + 1);
    builder.wait_flags(kFilled, static_cast<uint32_t>(c + 1));
    const Part part = chunk_of(all, c, slots.elems);
    for (int member = 0; member < problem.member_count; ++member) {
      sources[static_cast<size_t>(member)] =
          member == problem.me ? input(part) : window(member, {slots.offset(c), part.count});
    }
    builder.reduce_all(output(part), sources);
  }
  return builder.take(1, static_cast<uint32_t>(chunk_count));
}

Schedule plan_everyone(const Problem& problem, const Surroundings& surroundings) {
  return plan_named("shm_everyone", problem, surroundings);
}

bool fits_inline(const Problem& problem, const Surroundings& surroundings) {
  const size_t bytes = problem.count_elems * bytes_of(problem.dtype);
  return problem.count_elems > 0 && bytes <= surroundings.inline_bytes && fits(problem, surroundings) &&
         problem.count_elems <= Slots(problem, surroundings).elems;
}

double cost_inline(const Problem& problem, const Surroundings& surroundings) {
  return hand_over_seconds(problem, surroundings);
}

Schedule plan_inline(const Problem& problem, const Surroundings& surroundings) {
  return plan_named("shm_inline", problem, surroundings);
}

}  // namespace

Algorithm shm_everyone_row() { return {"shm_everyone", OpKind::allreduce, true, true, fits, cost, plan_everyone}; }
Algorithm shm_inline_row() {
  return {"shm_inline", OpKind::allreduce, true, true, fits_inline, cost_inline, plan_inline};
}

}  // namespace halay::collective
