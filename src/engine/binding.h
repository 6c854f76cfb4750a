// Where the result of an Operation goes: the caller's memory, or memory of the engine's that lives until it is
// released. Thread: whoever holds the token (no state).
#pragma once

#include "base/status.h"
#include "engine/operation.h"
#include "execute/executor.h"
#include "types/decision.h"

namespace halay::engine {

// Rows that member `member` of `member_count` gets of `rows`: n/p, the first n%p one more (Horovod's rule).
int64_t scattered_rows(int64_t rows, int member_count, int member);

// The caller's own checks of a Submission, before it is queued: no output that is too small, splits that fit, a shape
// that the kind can have. `member_count` is the process set's.
Status check_submission(const Submission& submission, int member_count);

// Fills operation.result and operation.binding for this Decision (`me` is this rank's member index): where the Batch
// reads and writes. no_memory if the result finds no room.
Status bind(Operation& operation, const Decision& decision, int member_count, int me);

}  // namespace halay::engine
