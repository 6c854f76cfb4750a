// The public functions over a given table, so that tests can run all that the CPU has. See math/kernels.h.
// Thread: any (no state).
#pragma once

#include "math/internal/kernel_table.h"
#include "math/kernels.h"

namespace halay::math {

void load_with(const KernelTable& table, DType dtype, void* dst_acc, const void* src, size_t n, double prescale);
void reduce_with(const KernelTable& table, DType accumulator, ReduceOp op, void* dst, const void* left,
                 const void* right, size_t n);
void finish_with(const KernelTable& table, DType dtype, void* dst, const void* src_acc, size_t n, const Scale& scale);

// Arguments of reduce_all; one for all of its tiles.
struct ReduceAll {
  DType dtype;
  ReduceOp op;
  const void* const* sources;
  size_t source_count;
  Scale scale;
  Stores stores;
};
void reduce_all_with(const KernelTable& table, const ReduceAll& job, void* dst, size_t n);

}  // namespace halay::math
