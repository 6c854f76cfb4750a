#include "trace/event_ring.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace halay::trace {

// An operation_end of the largest shape takes 65 slots, so a smaller ring could never hold one.
EventRing::EventRing(size_t events)
    : mask_(std::bit_ceil(std::max<size_t>(events, 128)) - 1), slots_(new Slot[mask_ + 1]) {}

bool EventRing::push(const Event& event, std::span<const int64_t> dims) {
  HALAY_ASSERT(dims.size() == event.dim_count);
  const uint64_t head = head_.load(std::memory_order_relaxed);
  const size_t needed = 1 + dim_slots(dims.size());
  if (head - tail_.load(std::memory_order_acquire) + needed > mask_ + 1) return false;
  slot(head) = pack(event);
  for (size_t i = 0; i < dims.size(); ++i) slot(head + 1 + i / 4)[i % 4] = dims[i];
  head_.store(head + needed);
  return true;
}

bool EventRing::pop(Event& event, std::span<int64_t> dims) {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head_.load(std::memory_order_acquire)) return false;
  event = unpack(slot(tail));
  HALAY_ASSERT(event.dim_count <= dims.size());
  for (size_t i = 0; i < event.dim_count; ++i) dims[i] = slot(tail + 1 + i / 4)[i % 4];
  tail_.store(tail + 1 + dim_slots(event.dim_count), std::memory_order_release);
  return true;
}

bool EventRing::half_full() const {
  return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed) > mask_ / 2;
}

}  // namespace halay::trace
