// The tiny path by hand: payload and counter in one line of shared memory, one hand-over from each to each other.
//
// A member has two lines and uses the one of the operation number's parity. It writes operation n only after it has
// read all counters of operation n - 1, and a member that has written n - 1 has finished n - 2: so nobody still reads
// the line that n overwrites (two_slots_test.cc). This holds because everybody hears from everybody: while a member
// has joined, a lane does without windows.
// Thread: one member's lane at a time.   Owns: nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/fabric.h"

namespace halay::execute {

inline constexpr size_t kLineBytes = 128;
// Counter first, so that up to 56 bytes of payload share its cache line.
inline constexpr size_t kTinyPayloadBytes = 112;
inline constexpr size_t kLinePayloadOffset = 8;
inline constexpr size_t kFlagStrideBytes = 128;

class Member {
 public:
  int32_t rank = -1;
  transport::Channel* channel = nullptr;  // null for this rank itself
  transport::WindowView window;

  std::byte* payload(uint64_t number) const { return line(number) + kLinePayloadOffset; }
  void publish(uint64_t number) const { word(line(number)).store(number, std::memory_order_release); }
  bool published(uint64_t number) const { return word(line(number)).load(std::memory_order_acquire) >= number; }

  std::atomic<uint64_t>& flag(uint32_t index) const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(static_cast<std::byte*>(window.flags) + index * kFlagStrideBytes);
  }

 private:
  std::byte* line(uint64_t number) const { return window.lines + (number & 1) * kLineBytes; }
  static std::atomic_ref<uint64_t> word(std::byte* at) { return std::atomic_ref(*reinterpret_cast<uint64_t*>(at)); }
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(kLinePayloadOffset + kTinyPayloadBytes <= kLineBytes);

}  // namespace halay::execute
