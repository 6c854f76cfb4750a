// Request: what one rank asks for one tensor. The first value of the flow Request -> Decision -> Batch -> Completion.
// Thread: any (value).
#pragma once

#include <cstdint>
#include <vector>

#include "types/enums.h"
#include "types/ids.h"
#include "types/shape.h"

namespace halay {

enum class DeviceType : uint8_t { cpu = 0, cuda = 1 };

struct Request {
  NameId name{};
  OpKind kind = OpKind::allreduce;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;
  Divisor divisor = Divisor::world;
  DeviceType device = DeviceType::cpu;
  int32_t root = 0;  // member, for kinds that have a root
  double prescale = 1.0;
  double postscale = 1.0;
  Shape shape;
  // alltoall only: rows for each member; sums to at most shape[0].
  std::vector<int64_t> splits;
  // Tensors submitted all-or-nothing: the name of the group and how many tensors it has. 0: not in a group.
  NameId group{};
  uint32_t group_size = 0;
};

}  // namespace halay
