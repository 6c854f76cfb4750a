// Sleep and wake between processes (rule 8). The sleeper writes what it waits for, *fences*, looks once more, and only
// then sleeps. The other stores its data, *fences*, looks whether somebody sleeps, and only then rings. Without both
// fences a processor may look before its own store is seen, and the wake-up is lost: sleep_model_test.cc shows it.
// Thread: sleep_with, woken: the sleeper; should_ring: any other.
#pragma once

#include <atomic>
#include <cstdint>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"  // the data itself is handed over by release and acquire, which tsan follows

namespace halay::region {

inline void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Lies in memory that both sides see; zero is awake.
struct SleepWord {
  static constexpr uint32_t kData = 1;  // sleeps until something comes
  static constexpr uint32_t kRoom = 2;  // sleeps until there is room in a full ring

  std::atomic<uint32_t> waits_for{0};

  // Before looking once more, after the last of several words: full_fence().
  void sleep_with(uint32_t what) { waits_for.store(what, std::memory_order_relaxed); }
  void woken() { waits_for.store(0, std::memory_order_relaxed); }
  // After a full_fence() that came after the store of what was done. True for one caller for each sleep.
  bool should_ring(uint32_t done) {
    if ((waits_for.load(std::memory_order_relaxed) & done) == 0) return false;
    return waits_for.exchange(0, std::memory_order_relaxed) != 0;
  }
};

}  // namespace halay::region

#pragma GCC diagnostic pop
