// The memory between two ranks that see each other's memory: a line for each side's word and a ring each way.
// Thread: each side's writer and reader are whoever holds that side's engine token.   Owns: nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>

#include "region/ring.h"
#include "region/sleep.h"

namespace halay::transport {

struct alignas(region::kLineBytes) PairSide {
  region::SleepWord sleep;
  std::atomic<uint32_t> closed{0};  // this side has let go in good order
};

inline constexpr size_t kLeastRingBytes = size_t{64} << 10;
inline constexpr size_t kMostRingBytes = size_t{1} << 20;
inline constexpr size_t kRingBudgetBytes = size_t{16} << 20;  // of all rings of one rank together

// Bytes of one ring, for so many ranks that share memory; a power of two.
inline size_t ring_bytes_for(size_t rank_count) {
  const size_t rings = 2 * std::max<size_t>(rank_count, 2) - 2;
  return std::clamp(std::bit_floor(kRingBudgetBytes / rings), kLeastRingBytes, kMostRingBytes);
}

inline size_t pair_bytes_for(size_t ring_bytes) {
  return 2 * sizeof(PairSide) + 2 * region::RingMemory::bytes_for(ring_bytes);
}

// One side's view. The lower rank is side 0. `memory` is zero at first and aligned to a line.
struct PairView {
  PairView(std::byte* memory, size_t ring_bytes, int side)
      : mine(sides(memory)[side]),
        theirs(sides(memory)[1 - side]),
        out(ring(memory, ring_bytes, side), ring_bytes),
        in(ring(memory, ring_bytes, 1 - side), ring_bytes) {}

  PairSide& mine;
  PairSide& theirs;
  region::RingWriter out;
  region::RingReader in;

 private:
  static PairSide* sides(std::byte* memory) { return reinterpret_cast<PairSide*>(memory); }
  static std::byte* ring(std::byte* memory, size_t ring_bytes, int from_side) {
    return memory + 2 * sizeof(PairSide) + static_cast<size_t>(from_side) * region::RingMemory::bytes_for(ring_bytes);
  }
};

}  // namespace halay::transport
