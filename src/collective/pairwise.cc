// pairwise alltoall: in round s everybody sends to the member s behind it and receives from the one s before it. Counts
// may differ; where there is nothing, no message goes.
//
// p members, n(s, d) elements of E bytes from s to d:
//   rounds  1
//   sent    sum over d != me of n(me, d) E
//   cost    (p - 1) alpha + M E beta, M the most that any member sends
#include "collective/exchange.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const auto members = static_cast<size_t>(problem.member_count);
  size_t most = 0;
  for (size_t source = 0; source < members; ++source) {
    size_t count = 0;
    for (size_t target = 0; target < members; ++target) count += problem.counts[source * members + target];
    most = std::max(most, count);
  }
  return static_cast<double>(members - 1) * surroundings.link.alpha +
         static_cast<double>(most * bytes_of(problem.dtype)) * surroundings.link.beta;
}

Schedule plan_pairwise(const Problem& problem, const Surroundings& surroundings) {
  Builder builder("pairwise", problem);
  const auto members = static_cast<size_t>(problem.member_count);
  const auto me = static_cast<size_t>(problem.me);
  std::vector<size_t> from_peer(members);
  for (size_t source = 0; source < members; ++source) from_peer[source] = problem.counts[source * members + me];
  const std::vector<Part> sent = parts_of({problem.counts.data() + me * members, members});
  const std::vector<Part> received = parts_of(from_peer);
  const size_t chunk = chunk_elems_of(surroundings, bytes_of(problem.dtype));
  for (size_t c = 0; c < chunks_in(sent[me].count, chunk); ++c) {
    builder.copy(output(chunk_of(received[me], c, chunk)), input(chunk_of(sent[me], c, chunk)));
  }
  exchange_all(builder, problem.me, sent, received, chunk);
  return builder.take(1);
}

}  // namespace

Algorithm pairwise_row() { return {"pairwise", OpKind::alltoall, true, false, fits, cost, plan_pairwise}; }

}  // namespace halay::collective
