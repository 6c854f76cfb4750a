#include "math/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "math/internal/dispatch.h"

namespace halay::math {
namespace {

// Rounding to nearest, and denormals kept, whatever the calling thread has set (torch.set_flush_denormal): ranks reduce
// the same numbers on different threads and must get the same bits.
class FloatMode {
 public:
  FloatMode() {
#if defined(__SSE2__)
    saved_ = __builtin_ia32_stmxcsr();
    if ((saved_ & kMask) != 0) __builtin_ia32_ldmxcsr(saved_ & ~kMask);
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    if ((saved_ & kMask) != 0) __asm__ volatile("msr fpcr, %0" : : "r"(saved_ & ~kMask));
#endif
  }
  ~FloatMode() {
    if ((saved_ & kMask) == 0) return;
#if defined(__SSE2__)
    __builtin_ia32_ldmxcsr(saved_);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(saved_));
#endif
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint32_t kMask = 0x8000u | 0x6000u | 0x0040u;  // flush to zero, rounding, denormals are zero
  uint32_t saved_ = 0;
#else
  static constexpr uint64_t kMask = 0x1c80000u;  // flush to zero (also of 16-bit floats), rounding
  uint64_t saved_ = 0;
#endif
};

OpIndex index_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return kSum;
    case ReduceOp::min:
      return kMin;
    case ReduceOp::max:
      return kMax;
    case ReduceOp::product:
      return kProduct;
  }
  return kSum;
}

const DTypeKernels& row_of(const KernelTable& table, DType dtype) { return table.dtypes[static_cast<size_t>(dtype)]; }

// A tile of accumulators stays in the first-level cache, with one for each level of the tree.
constexpr size_t kTileBytes = 2048;
constexpr size_t kMaxLevels = 15;

// Evaluates the canonical tree over p sources (fold tree: r = p - 2^k pairs are folded first, then a perfect binary
// tree over the 2^k that are left) for one tile of elements.
class TileTree {
 public:
  TileTree(const KernelTable& table, const ReduceAll& job)
      : table_(table),
        job_(job),
        own_(row_of(table, job.dtype)),
        wide_(row_of(table, accumulator_of(job.dtype))),
        op_(index_of(job.op)),
        plain_(job.scale.prescale == 1.0),
        dtype_bytes_(bytes_of(job.dtype)),
        levels_(static_cast<size_t>(std::bit_width(job.source_count)) - 1),
        folded_(job.source_count - (size_t{1} << levels_)) {
    HALAY_ASSERT(job.source_count >= 1 && levels_ <= kMaxLevels);
  }

  // One tile, from element `first`; `dst` is where that tile's result goes.
  void run(void* dst, size_t first, size_t n) {
    first_ = first;
    n_ = n;
    const Scale& scale = job_.scale;
    const bool as_is = !widens(job_.dtype) && scale.postscale == 1.0 && scale.divisor == 1;
    const bool streaming = job_.stores == Stores::streaming;
    // The last combination may write straight to dst: it reads an element of every source before it writes that
    // element.
    const void* result = node(levels_, 0, as_is && !streaming ? dst : slots_[levels_]);
    if (!as_is) {
      void* const rounded = streaming ? slots_[kMaxLevels + 1] : dst;
      own_.finish(rounded, result, n, scale.postscale, scale.divisor);
      result = rounded;
    }
    if (streaming && result != dst) {
      table_.stream(dst, result, n * dtype_bytes_);
    } else if (result != dst) {
      std::memcpy(dst, result, n * dtype_bytes_);
    }
  }

 private:
  const void* source(size_t index) const {
    return static_cast<const unsigned char*>(job_.sources[index]) + first_ * dtype_bytes_;
  }

  // The value of the node over leaves [index << level, (index + 1) << level): in `out`, or the source itself where a
  // leaf needs no change. Its parts are computed in the slots of the levels below.
  const void* node(size_t level, size_t index, void* out) {
    if (level == 0) return leaf(index, out);
    if (level == 1 && plain_) {
      if (2 * index >= folded_) return pair(2 * index + folded_, out);
      if (2 * index + 1 < folded_) return quad(4 * index, out);
    }
    if (level == 2 && plain_ && 4 * index >= folded_) return quad(4 * index + folded_, out);
    // At the top `out` may be a source, so the left part has a slot of its own.
    void* const left_slot = level == levels_ ? slots_[levels_] : out;
    const void* const left = node(level - 1, 2 * index, left_slot);
    const void* const right = node(level - 1, 2 * index + 1, slots_[level - 1]);
    wide_.pair[op_](out, left, right, n_);
    return out;
  }

  const void* leaf(size_t index, void* out) {
    if (index < folded_) return pair(2 * index, out);
    return load(index + folded_, out);
  }

  const void* load(size_t index, void* out) {
    if (plain_ && !widens(job_.dtype)) return source(index);
    own_.load(out, source(index), n_, job_.scale.prescale);
    return out;
  }

  const void* pair(size_t first_source, void* out) {
    if (plain_) {
      own_.pair[op_](out, source(first_source), source(first_source + 1), n_);
      return out;
    }
    // `out` may be a source: both are loaded before it is written.
    own_.load(slots_[kMaxLevels + 1], source(first_source), n_, job_.scale.prescale);
    own_.load(slots_[kMaxLevels + 2], source(first_source + 1), n_, job_.scale.prescale);
    wide_.pair[op_](out, slots_[kMaxLevels + 1], slots_[kMaxLevels + 2], n_);
    return out;
  }

  const void* quad(size_t first_source, void* out) {
    const void* const sources[4] = {source(first_source), source(first_source + 1), source(first_source + 2),
                                    source(first_source + 3)};
    own_.quad[op_](out, sources, n_);
    return out;
  }

  const KernelTable& table_;
  const ReduceAll& job_;
  const DTypeKernels& own_;
  const DTypeKernels& wide_;
  const OpIndex op_;
  const bool plain_;  // no prescale
  const size_t dtype_bytes_;
  const size_t levels_;
  const size_t folded_;
  size_t first_ = 0;
  size_t n_ = 0;
  alignas(64) unsigned char slots_[kMaxLevels + 3][kTileBytes];
};

}  // namespace

void load_with(const KernelTable& table, DType dtype, void* dst_acc, const void* src, size_t n, double prescale) {
  const FloatMode mode;
  row_of(table, dtype).load(dst_acc, src, n, prescale);
}

void reduce_with(const KernelTable& table, DType accumulator, ReduceOp op, void* dst, const void* left,
                 const void* right, size_t n) {
  HALAY_ASSERT(!widens(accumulator));
  const FloatMode mode;
  row_of(table, accumulator).pair[index_of(op)](dst, left, right, n);
}

void finish_with(const KernelTable& table, DType dtype, void* dst, const void* src_acc, size_t n, const Scale& scale) {
  HALAY_ASSERT(scale.divisor >= 1);
  const FloatMode mode;
  row_of(table, dtype).finish(dst, src_acc, n, scale.postscale, scale.divisor);
}

void reduce_all_with(const KernelTable& table, const ReduceAll& job, void* dst, size_t n) {
  HALAY_ASSERT(job.scale.divisor >= 1);
  const FloatMode mode;
  TileTree tree(table, job);
  const size_t dtype_bytes = bytes_of(job.dtype);
  const size_t tile = kTileBytes / bytes_of(accumulator_of(job.dtype));
  for (size_t first = 0; first < n; first += tile) {
    tree.run(static_cast<unsigned char*>(dst) + first * dtype_bytes, first, n - first < tile ? n - first : tile);
  }
  if (job.stores == Stores::streaming) table.fence();
}

void load(DType dtype, void* dst_acc, const void* src, size_t count_elems, double prescale) {
  load_with(chosen_table(), dtype, dst_acc, src, count_elems, prescale);
}

void reduce(DType accumulator, ReduceOp op, void* dst, const void* left, const void* right, size_t count_elems) {
  reduce_with(chosen_table(), accumulator, op, dst, left, right, count_elems);
}

void finish(DType dtype, void* dst, const void* src_acc, size_t count_elems, const Scale& scale) {
  finish_with(chosen_table(), dtype, dst, src_acc, count_elems, scale);
}

void reduce_all(DType dtype, ReduceOp op, void* dst, const void* const* sources, size_t source_count,
                size_t count_elems, const Scale& scale, Stores stores) {
  reduce_all_with(chosen_table(), {dtype, op, sources, source_count, scale, stores}, dst, count_elems);
}

void copy(void* dst, const void* src, size_t size_bytes, Stores stores) {
  if (size_bytes == 0 || dst == src) return;
  if (stores == Stores::streaming) {
    chosen_table().stream(dst, src, size_bytes);
    chosen_table().fence();
  } else {
    std::memcpy(dst, src, size_bytes);
  }
}

Status check_arithmetic(DType dtype, ReduceOp op, double prescale, double postscale, IntAverage policy) {
  if (!std::isfinite(prescale) || !std::isfinite(postscale)) {
    return Status::invalid_argument(text("prescale ", prescale, ", postscale ", postscale, ": both must be finite"));
  }
  const bool scales = prescale != 1.0 || postscale != 1.0;
  if (kind_of(dtype) == DTypeKind::boolean && scales) {
    return Status::invalid_argument(
        text("prescale ", prescale, ", postscale ", postscale, ": a scale of ", dtype, " has no meaning"));
  }
  if (op != ReduceOp::average) return {};
  const AverageRule rule = average_rule_of(dtype);
  if (rule == AverageRule::error) {
    return Status::invalid_argument(
        text("average of ", dtype, " has no meaning; sum and max are or, min and product are and"));
  }
  if (rule == AverageRule::truncate && policy == IntAverage::error) {
    return Status::invalid_argument(
        text("average of ", dtype, " would be truncated, and HALAY_INT_AVERAGE=error refuses that; use sum"));
  }
  return {};
}

std::string_view instruction_set() { return chosen_table().name; }

}  // namespace halay::math
