// dissemination barrier: in round j everybody tells the member 2^j behind it, and so of all it has heard of itself.
// p members:
//   rounds  ceil(log2 p)
//   sent    0: messages of no elements
//   cost    ceil(log2 p) alpha
#include "collective/binomial.h"
#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  return ceil_log2(problem.member_count) * surroundings.link.alpha;
}

Schedule plan_dissemination(const Problem& problem, const Surroundings&) {
  Builder builder("dissemination", problem);
  const int members = problem.member_count, rounds = ceil_log2(members);
  for (int round = 0; round < rounds; ++round) {
    Post received = builder.recv(before(problem.me, 1 << round, members), staging({0, 0}));
    Post sent = builder.send(after(problem.me, 1 << round, members), staging({0, 0}));
    builder.wait(received);
    builder.wait(sent);
  }
  return builder.take(static_cast<uint32_t>(rounds));
}

}  // namespace

Algorithm dissemination_row() {
  return {"dissemination", OpKind::barrier, true, false, fits, cost, plan_dissemination};
}

}  // namespace halay::collective
