// One recorded event, packed into 32 bytes; the dimensions of a shape follow it in slots of four.
// Thread: any (values).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/name_id.h"

namespace halay::trace {

enum class EventKind : uint8_t {
  negotiate_begin,  // detail: OpKind
  rank_ready,       // value: rank
  negotiate_end,
  operation_begin,  // detail: OpKind
  activity_begin,   // detail: Activity
  activity_end,
  operation_end,  // detail: DType; value: elements; dims follow
  list_decided,   // value: its number
};

struct Event {
  Time at;
  NameId name{};
  EventKind kind = EventKind::negotiate_begin;
  uint8_t detail = 0;
  uint8_t dim_count = 0;
  int64_t value = 0;
};

using Slot = std::array<int64_t, 4>;

inline Slot pack(const Event& event) {
  const uint64_t small = static_cast<uint64_t>(event.name) | static_cast<uint64_t>(event.kind) << 32 |
                         static_cast<uint64_t>(event.detail) << 40 | static_cast<uint64_t>(event.dim_count) << 48;
  return {event.at.ns, static_cast<int64_t>(small), event.value, 0};
}

inline Event unpack(const Slot& slot) {
  const auto small = static_cast<uint64_t>(slot[1]);
  return {Time{slot[0]},
          static_cast<NameId>(static_cast<uint32_t>(small)),
          static_cast<EventKind>(static_cast<uint8_t>(small >> 32)),
          static_cast<uint8_t>(small >> 40),
          static_cast<uint8_t>(small >> 48),
          slot[2]};
}

inline size_t dim_slots(size_t dim_count) { return (dim_count + 3) / 4; }

}  // namespace halay::trace
