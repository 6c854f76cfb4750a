// alone: one member. The result is the input, loaded and finished where something is reduced.
// Bytes on the wire 0, rounds 0. Cost: bytes * gamma.
#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count == 1; }

// Rows of an alltoall that no split names stay behind.
size_t moved_elems(const Problem& problem) {
  if (problem.kind == OpKind::barrier) return 0;
  return problem.kind == OpKind::alltoall ? problem.counts[0] : problem.count_elems;
}

double cost(const Problem& problem, const Surroundings& surroundings) {
  return static_cast<double>(moved_elems(problem) * bytes_of(problem.dtype)) * surroundings.link.gamma;
}

Schedule plan_alone(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("alone", problem);
  const bool reduces = traits_of(problem.kind).reduces;
  if (reduces && !widens(problem.dtype)) builder.let_acc_be_output();
  const size_t chunk = chunk_elems_of(surroundings, bytes_of(accumulator_of(problem.dtype)));
  const Part all{0, moved_elems(problem)};
  for (size_t c = 0; c < chunks_in(all.count, chunk); ++c) {
    const Part part = chunk_of(all, c, chunk);
    if (!reduces) {
      builder.copy(output(part), input(part));
      continue;
    }
    const Region wide = acc({widens(problem.dtype) ? 0 : part.offset, part.count});
    builder.load(wide, input(part));
    builder.finish(output(part), wide);
  }
  return builder.take(0);
}

}  // namespace

Algorithm alone_row(OpKind kind) { return {"alone", kind, true, false, fits, cost, plan_alone}; }

}  // namespace halay::collective
