// The slots of a window, as the shared-memory algorithms use them in turn. Private to this room.
//
// Each member fills its slot of chunk c before it works on chunk c - 1 (so that nobody waits for who is a little late),
// and raises flag `kFilled` to c + 1. With four slots nothing else is needed to know that a slot may be written again:
// filling chunk c comes after working on c - 2, which waited until all had filled c - 2, which they did after working
// on c - 4, the last chunk of this slot. (shm_owner.cc has a chain of its own.)
// Thread: any (values).
#pragma once

#include "collective/builder.h"

namespace halay::collective {

inline constexpr size_t kSlotCount = 4;
inline constexpr uint32_t kFilled = 0;   // flag
inline constexpr uint32_t kReduced = 1;  // flag
// Boundaries on cache lines, where the data are large enough, keep writers apart.
inline constexpr size_t kLineBytes = 128;
// At most so much in a slot: an input chunk, the slot and a peer's slot stay in a second-level cache
// (docs/performance.md).
inline constexpr size_t kSlotBytes = 128 * 1024;

struct Slots {
  Slots(const Problem& problem, const Surroundings& surroundings);

  size_t elems = 0;  // of one slot; 0: the windows are too small

  size_t offset(size_t chunk_index) const { return chunk_index % kSlotCount * elems; }
};

// What a hand-over costs: one line from a peer, and a quarter of that for each further one (they arrive side by side).
double hand_over_seconds(const Problem& problem, const Surroundings& surroundings);

}  // namespace halay::collective
