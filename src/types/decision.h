// Decision: what all members of a process set will do with one tensor; the same on every member. Numbered lists of
// Decisions are the one order of a process set (rule 1).
// Thread: any (values).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "types/request.h"

namespace halay {

struct Decision {
  // The number under which a repetition of this Decision travels; 0 if it is not cached.
  uint32_t cache_id = 0;
  NameId name{};
  OpKind kind = OpKind::allreduce;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;
  Divisor divisor = Divisor::world;
  DeviceType device = DeviceType::cpu;
  int32_t root = 0;  // member
  double prescale = 1.0;
  double postscale = 1.0;
  Shape shape;  // for ShapeRule::rows, dim 0 is this member's own
  // allgather: rows of each member (p). alltoall: rows from member s to member d at [s * p + d] (p * p).
  std::vector<int64_t> rows;
  // Tensors of one group are decided in one list and carry the same group (0: none).
  NameId group{};
  uint32_t group_size = 0;
  // Join: the member that joined last.
  int32_t last_joined = -1;
  // Not ok: the operation fails on all members with this, and the engine stays usable.
  Status status;
};

// One Decision with this rank's own operation for it (none where this rank has joined).
struct Decided {
  const Decision* decision = nullptr;
  Ticket ticket = Ticket::none;
};

// One numbered list, as a member sees it. The pointers hold until the next call on the control that gave it.
struct DecisionList {
  uint64_t number = 0;
  std::vector<Decided> decided;
  // Members that have joined and are skipped, ascending.
  std::vector<int> joined;
  // The limit that fusion keeps to; it changes only by a list, so that all members pack alike (rule 2).
  size_t fusion_bytes = 0;
};

}  // namespace halay
