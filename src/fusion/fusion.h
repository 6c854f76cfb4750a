// Packs one DecisionList into Batches. Pure: the same list gives the same Batches on every member.
// Thread: any (no state).   Owns: nothing.
#pragma once

#include <vector>

#include "types/batch.h"
#include "types/decision.h"

namespace halay::fusion {

// `set_size` and `me` are the process set's. Decisions whose status is not ok, and joins, are not packed: a failed one
// is left out (the engine completes its ticket), a join becomes a Batch of its own (it runs as a barrier, so that no
// old operation is still read from). Looks ahead past tensors of another dtype, op, scale or device; order inside a
// Batch is the order of the list. Tensors of one group are never separated unless dtype, op or scale force it. A rank
// that has joined gets Batches with me == -1.
std::vector<Batch> pack(const DecisionList& list, int set_size, int me);

}  // namespace halay::fusion
