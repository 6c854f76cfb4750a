// Batch: the tensors that one Schedule moves together. A pure function of one DecisionList, so all members build the
// same. Thread: any (value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "types/enums.h"
#include "types/ids.h"

namespace halay {

struct BatchTensor {
  NameId name{};
  Ticket ticket = Ticket::none;
  size_t count_elems = 0;  // of this member's input
};

struct Batch {
  uint64_t list_number = 0;
  OpKind kind = OpKind::allreduce;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;  // average is sum with a divisor
  double prescale = 1.0;
  double postscale = 1.0;
  int64_t divisor = 1;  // applied last, then rounded once
  int root = 0;         // index into `members`
  // Who takes part, ascending members of the process set (joined ones are missing); `me` is this rank's index in it,
  // or -1 if it does not take part.
  std::vector<int> members;
  int me = -1;
  // Elements in all tensors together, this member's input.
  size_t count_elems = 0;
  // allgather: elements of each participant. reducescatter: elements that each gets. alltoall: p * p, source-major.
  std::vector<size_t> counts;
  std::vector<BatchTensor> tensors;
  // Join: the member (of the process set) that joined last.
  int32_t last_joined = -1;
};

}  // namespace halay
