// What the algorithm files give to the table in algorithms.cc. Private to this room.
// Thread: any (no state).
#pragma once

#include "collective/plan.h"

namespace halay::collective {

Algorithm alone_row(OpKind kind);

Algorithm shm_inline_row();
Algorithm shm_everyone_row();
Algorithm shm_owner_row();
Algorithm recursive_doubling_row();
Algorithm halving_doubling_row();
Algorithm direct_allreduce_row();
Algorithm ring_allreduce_row();

Algorithm shm_owner_scatter_row();
Algorithm direct_reducescatter_row();
Algorithm ring_reducescatter_row();

Algorithm shm_gather_row();
Algorithm direct_allgather_row();
Algorithm ring_allgather_row();

Algorithm binomial_row();
Algorithm scatter_allgather_row();
Algorithm pairwise_row();
Algorithm dissemination_row();

}  // namespace halay::collective
