// Which tables of kernels this CPU can run. Own check instead of an ifunc or the compiler's run-time library, so that
// it works the same with every tool chain. Thread: any.
#include "math/internal/kernel_table.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halay::math {
namespace {

#if defined(__x86_64__)
struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;
};

CpuFeatures features_of_cpu() {
  CpuFeatures features;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return features;
  constexpr unsigned kOsxsave = 1u << 27, kF16c = 1u << 29;
  if ((c & kOsxsave) == 0 || (c & kF16c) == 0) return features;
  // What the system saves at a context switch: xmm and ymm; for avx512 also the masks and both halves of zmm.
  unsigned saved_low = 0, saved_high = 0;
  __asm__ volatile("xgetbv" : "=a"(saved_low), "=d"(saved_high) : "c"(0));
  constexpr unsigned kYmm = 0x6, kZmm = 0xe6;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return features;
  constexpr unsigned kAvx2 = 1u << 5;
  constexpr unsigned kAvx512 = (1u << 16) | (1u << 17) | (1u << 30) | (1u << 31);  // F, DQ, BW, VL
  // Only CPUs with VBMI (2018 and later): older ones slow down when they meet 512-bit instructions.
  constexpr unsigned kVbmi = 1u << 1;
  features.avx2 = (b & kAvx2) != 0 && (saved_low & kYmm) == kYmm;
  features.avx512 = features.avx2 && (b & kAvx512) == kAvx512 && (c & kVbmi) != 0 && (saved_low & kZmm) == kZmm;
  return features;
}
#endif

}  // namespace

UsableTables usable_tables() {
  UsableTables usable{{&baseline::kTable, nullptr, nullptr, nullptr}};
#if defined(__x86_64__)
  const CpuFeatures features = features_of_cpu();
  if (features.avx2) usable.tables[1] = &avx2::kTable;
  if (features.avx512) usable.tables[2] = &avx512::kTable;
#endif
  return usable;
}

const KernelTable& chosen_table() {
  // Asked once: a virtual machine answers cpuid by a trap to its host. Constant from then on.
  static const KernelTable* const kChosen = [] {
    const UsableTables usable = usable_tables();
    size_t last = 0;
    while (usable.tables[last + 1] != nullptr) ++last;
    return usable.tables[last];
  }();
  return *kChosen;
}

}  // namespace halay::math
