#include "collective/plan.h"
#include "collective/rows.h"

namespace halay::collective {

const std::vector<Algorithm>& algorithms() {
  // Never destroyed: a thread may still be at work while the process ends.
  static const auto& kTable = *new std::vector<Algorithm>{
      alone_row(OpKind::allreduce),     shm_inline_row(),        shm_everyone_row(),         shm_owner_row(),
      recursive_doubling_row(),         halving_doubling_row(),  direct_allreduce_row(),     ring_allreduce_row(),

      alone_row(OpKind::reducescatter), shm_owner_scatter_row(), direct_reducescatter_row(), ring_reducescatter_row(),

      alone_row(OpKind::allgather),     shm_gather_row(),        direct_allgather_row(),     ring_allgather_row(),

      alone_row(OpKind::broadcast),     binomial_row(),          scatter_allgather_row(),

      alone_row(OpKind::alltoall),      pairwise_row(),

      alone_row(OpKind::barrier),       dissemination_row(),
  };
  return kTable;
}

}  // namespace halay::collective
