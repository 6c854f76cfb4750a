#include "trace/recorder.h"

namespace halay::trace {

void Recorder::record(const Event& event) {
  const uint64_t number = count_.load(std::memory_order_relaxed);
  Entry& entry = entries_[number % kEvents];
  const Slot slot = pack(event);
  entry.number.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < entry.words.size(); ++i) entry.words[i].store(slot[i], std::memory_order_release);
  entry.number.store(number + 1, std::memory_order_release);
  count_.store(number + 1, std::memory_order_release);
}

std::vector<Event> Recorder::last() const {
  std::vector<Event> out;
  const uint64_t end = count_.load(std::memory_order_acquire);
  for (uint64_t number = end > kEvents ? end - kEvents : 0; number < end; ++number) {
    const Entry& entry = entries_[number % kEvents];
    if (entry.number.load(std::memory_order_acquire) != number + 1) continue;
    Slot slot{};
    for (size_t i = 0; i < entry.words.size(); ++i) slot[i] = entry.words[i].load(std::memory_order_acquire);
    if (entry.number.load(std::memory_order_relaxed) == number + 1) out.push_back(unpack(slot));
  }
  return out;
}

}  // namespace halay::trace
