// Scratch memory that is used again and again, so that the first touch of its pages is paid once.
// Thread: whoever holds the engine's token.   Owns: the blocks; a Block must not outlive its Pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace halay::memory {

inline constexpr size_t kAlignment = 128;  // two cache lines: what the prefetcher takes at once

class Pool;

// Borrowed from a Pool; gives itself back.
class Block {
 public:
  Block() = default;
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  ~Block() { give_back(); }

  void* data() const { return data_; }
  // What was asked for; never more than there is.
  size_t size_bytes() const { return size_bytes_; }
  void give_back();

 private:
  friend class Pool;
  Block(Pool* pool, void* data, size_t size_bytes, size_t room_bytes)
      : pool_(pool), data_(data), size_bytes_(size_bytes), room_bytes_(room_bytes) {}
  Pool* pool_ = nullptr;
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t room_bytes_ = 0;
};

struct PoolOptions {
  size_t keep_bytes = size_t{256} << 20;  // free blocks beyond this are released at once, the longest unused first
  int64_t keep_ms = 30'000;               // a block that nobody took for this long is released by trim()
};

struct PoolCounters {
  size_t held_bytes = 0;  // in use or free
  size_t held_bytes_peak = 0;
  size_t in_use_bytes = 0;
  uint64_t taken = 0;
  uint64_t reused = 0;  // of those taken, how many were there already
};

class Pool {
 public:
  explicit Pool(PoolOptions options = {}) : options_(options) {}
  // Asserts that every Block has come back.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // At least `size_bytes`, aligned to kAlignment, contents undefined. no_memory if the system has none. Zero bytes are
  // a Block without data.
  Result<Block> take(size_t size_bytes);

  // Releases what was free for keep_ms. Call it now and then, and at next_trim().
  void trim(Time now);
  // When trim() has something to look at; never if nothing is free.
  Time next_trim() const { return free_bytes() == 0 ? Time::never() : next_trim_; }

  const PoolCounters& counters() const { return counters_; }

 private:
  friend class Block;
  struct FreeBlock {
    void* data;
    uint64_t given_back;  // order of giving back, for "longest unused"
    Time seen_free;       // when trim() first saw it free; never: not yet
  };
  void give_back(void* data, size_t room_bytes);
  void release_oldest();
  size_t free_bytes() const { return counters_.held_bytes - counters_.in_use_bytes; }

  PoolOptions options_;
  PoolCounters counters_;
  std::map<size_t, std::vector<FreeBlock>> free_;  // by size class; the last of a class was given back last
  uint64_t given_back_ = 0;
  Time next_trim_{0};
};

// The size class: the next of 1, 1.25, 1.5, 1.75 times a power of two, at least 1 KiB. 0 if that would overflow.
size_t size_class(size_t size_bytes);

}  // namespace halay::memory
