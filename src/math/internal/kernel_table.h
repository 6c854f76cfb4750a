// What one instruction set offers: a constant table of loops. kernels.cc picks a table; tests walk all of them.
// Only plain declarations here: a file compiled for a newer CPU must not leave inline code that others would link to.
// Thread: any (no state).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halay::math {

// Order of the op columns; `average` is a sum.
enum OpIndex : uint8_t { kSum, kMin, kMax, kProduct, kOpCount };

struct DTypeKernels {
  void (*load)(void* dst_acc, const void* src, size_t n, double prescale);
  void (*finish)(void* dst, const void* src_acc, size_t n, double postscale, int64_t divisor);
  // dst (accumulator type) = a op b, and (s[0] op s[1]) op (s[2] op s[3]), of sources of the dtype.
  void (*pair[kOpCount])(void* dst_acc, const void* a, const void* b, size_t n);
  void (*quad[kOpCount])(void* dst_acc, const void* const* sources, size_t n);
};

inline constexpr size_t kDTypeCount = 13;

struct KernelTable {
  const char* name;
  DTypeKernels dtypes[kDTypeCount];  // by number
  // Copies past the cache; `fence` must follow, once after any number of them.
  void (*stream)(void* dst, const void* src, size_t size_bytes);
  void (*fence)();
};

namespace baseline {
extern const KernelTable kTable;
}
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}

// The tables that this CPU can run, plainest first; ends with nullptr.
struct UsableTables {
  const KernelTable* tables[4];
};
UsableTables usable_tables();
// The last of them, found once.
const KernelTable& chosen_table();

}  // namespace halay::math
