#include "collective/plan.h"

namespace halay::collective {

Problem Problem::of(const Batch& batch) {
  Problem problem;
  // A join ends like a barrier: nobody leaves before all old operations are over.
  problem.kind = batch.kind == OpKind::join ? OpKind::barrier : batch.kind;
  problem.dtype = batch.dtype;
  problem.reduce_op = batch.reduce_op;
  problem.member_count = static_cast<int>(batch.members.size());
  problem.me = batch.me;
  problem.root = batch.root;
  problem.count_elems = batch.count_elems;
  problem.counts = batch.counts;
  return problem;
}

}  // namespace halay::collective
