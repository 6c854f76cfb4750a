// The flight recorder: the last events, kept in memory always, for the verdict after a failure.
// Thread: record: whoever holds the engine's token. last: any, at any time.   Owns: its slots.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/event.h"

namespace halay::trace {

class Recorder {
 public:
  static constexpr size_t kEvents = 4096;

  void record(const Event& event);
  // Oldest first. Events that are overwritten meanwhile are left out.
  std::vector<Event> last() const;

 private:
  // `number` is 0 while the slot is being written, else 1 + the number of the event: a reader that sees the same number
  // before and after has read one whole event. Each word is stored with release, so that who reads a new word sees the
  // 0 too.
  struct Entry {
    std::atomic<uint64_t> number{0};
    std::array<std::atomic<int64_t>, 3> words{};
  };

  std::array<Entry, kEvents> entries_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace halay::trace
