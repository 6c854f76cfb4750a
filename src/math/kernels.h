// Arithmetic on arrays: load, reduce, finish, and all of them at once; docs/arithmetic.md is the table. Every
// instruction set gives the same bits; the best one that the CPU has is chosen at the first call. Pure. Thread: any (no
// state).   Owns: nothing.
//
// A value is widened to its accumulator type (float32 for float16 and bfloat16, else the same), combined there, and
// rounded once, by `finish`:   result = round(postscale * (op over ranks of prescale * x) / divisor) Buffers need no
// alignment beyond what their owner gave them. Two buffers are either the same address or do not overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "types/enums.h"

namespace halay::math {

// A factor of exactly 1 costs nothing.
struct Scale {
  double prescale = 1.0;
  double postscale = 1.0;
  int64_t divisor = 1;  // at least 1; what an average divides by
};

// How a result is stored: into the cache, or past it (non-temporal, and an sfence before the function returns, so that
// a flag stored with release afterwards covers it). Past the cache pays where another core reads it, or nobody does
// soon.
enum class Stores : uint8_t { cached, streaming };
// By the size of the whole message, not of one chunk.
inline constexpr size_t kStreamingBytes = size_t{1} << 20;
inline Stores stores_for(size_t message_bytes) {
  return message_bytes >= kStreamingBytes ? Stores::streaming : Stores::cached;
}

// dst (accumulator type) = prescale * src (dtype). May be in place where the dtype does not widen.
void load(DType dtype, void* dst_acc, const void* src, size_t count_elems, double prescale = 1.0);

// dst = left op right, all of type `accumulator` (see accumulator_of); dst may be either of them. `average` is a sum.
void reduce(DType accumulator, ReduceOp op, void* dst, const void* left, const void* right, size_t count_elems);

// dst (dtype) = round(postscale * src (accumulator type) / divisor). May be in place where the dtype does not widen.
void finish(DType dtype, void* dst, const void* src_acc, size_t count_elems, const Scale& scale);

// dst = finish(op over all sources, in canonical tree order, of load(source)); one pass, rounded once. All of `dtype`;
// dst may be one of the sources. At least one source.
void reduce_all(DType dtype, ReduceOp op, void* dst, const void* const* sources, size_t source_count,
                size_t count_elems, const Scale& scale, Stores stores = Stores::cached);

void copy(void* dst, const void* src, size_t size_bytes, Stores stores = Stores::cached);

// What HALAY_INT_AVERAGE says: Horovod truncates.
enum class IntAverage : uint8_t { truncate, error };
// invalid_argument, in words, for a pair without meaning: an average or a scale of bool8, a scale that is not finite,
// an average of integers where the policy is `error`. Call it before anything is queued.
Status check_arithmetic(DType dtype, ReduceOp op, double prescale, double postscale, IntAverage policy);

// "baseline", "avx2" or "avx512": for reports.
std::string_view instruction_set();

}  // namespace halay::math
