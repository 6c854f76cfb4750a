// Events on their way to the file: a ring of fixed size with one producer and one consumer, without a lock.
// Thread: push: whoever holds the engine's token. pop: the writer thread.   Owns: its slots.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "trace/event.h"

namespace halay::trace {

class EventRing {
 public:
  // Room for at least `events`.
  explicit EventRing(size_t events);
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  // False, and nothing is written, if there is no room for the event and its dims.
  bool push(const Event& event, std::span<const int64_t> dims);
  // False if there is none. `dims` must have room for 255.
  bool pop(Event& event, std::span<int64_t> dims);
  bool empty() const { return tail_.load(std::memory_order_relaxed) == head_.load(); }
  // For the producer: at least half of the slots are taken.
  bool half_full() const;

 private:
  Slot& slot(uint64_t index) { return slots_[index & mask_]; }

  const size_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  // Slots written and slots read since the beginning. seq_cst where sleeping and waking meet: see writer.cc.
  alignas(128) std::atomic<uint64_t> head_{0};
  alignas(128) std::atomic<uint64_t> tail_{0};
};

}  // namespace halay::trace
