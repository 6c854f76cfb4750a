// Where this process stands in its world. Thread: any (value).
#pragma once

#include <cstdint>

namespace halay {

struct WorldInfo {
  int32_t rank = 0, size = 1;
  int32_t local_rank = 0, local_size = 1;  // among the ranks of the same machine
  int32_t cross_rank = 0, cross_size = 1;  // among the machines that have this local_rank
  bool homogeneous = true;                 // the same local_size on all machines
};

}  // namespace halay
