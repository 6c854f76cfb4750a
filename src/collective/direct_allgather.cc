// direct allgather: everybody sends its own part to everybody. Parts may differ; empty ones send nothing.
// p members, parts of n(m) elements of E bytes:
//   rounds  1
//   sent    (p - 1) n(me) E
//   cost    alpha + (p - 2) alpha / 4 + (p - 1) m E beta (1 + (p - 2) / 64), m the largest part; see direct.cc
#include "collective/exchange.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.link;
  const double others = problem.member_count - 1;
  const auto part_bytes = static_cast<double>(largest(parts_of(problem.counts)) * bytes_of(problem.dtype));
  return link.alpha + (others - 1) * link.alpha / 4 + others * part_bytes * link.beta * (1 + (others - 1) / 64);
}

Schedule plan_direct_allgather(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("direct", problem);
  const size_t chunk = chunk_elems_of(surroundings, bytes_of(problem.dtype));
  const std::vector<Part> parts = parts_of(problem.counts);
  const Part& mine = parts[static_cast<size_t>(problem.me)];
  const std::vector<Part> to_peer(parts.size(), Part{0, mine.count});
  for (size_t c = 0; c < chunks_in(mine.count, chunk); ++c) {
    builder.copy(output(chunk_of(mine, c, chunk)), input(chunk_of({0, mine.count}, c, chunk)));
  }
  exchange_all(builder, problem.me, to_peer, parts, chunk);
  return builder.take(1);
}

}  // namespace

Algorithm direct_allgather_row() {
  return {"direct", OpKind::allgather, true, false, fits, cost, plan_direct_allgather};
}

}  // namespace halay::collective
