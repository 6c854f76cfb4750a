#include "memory/pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace halay::memory {

size_t size_class(size_t size_bytes) {
  constexpr size_t kLeast = 1024;
  if (size_bytes <= kLeast) return kLeast;
  const size_t step = std::bit_floor(size_bytes - 1) / 4;
  if (size_bytes > SIZE_MAX - step) return 0;
  return (size_bytes + step - 1) / step * step;
}

Block::Block(Block&& other) noexcept { *this = std::move(other); }

Block& Block::operator=(Block&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  room_bytes_ = std::exchange(other.room_bytes_, 0);
  return *this;
}

void Block::give_back() {
  if (data_ != nullptr) pool_->give_back(data_, room_bytes_);
  pool_ = nullptr;
  data_ = nullptr;
  size_bytes_ = room_bytes_ = 0;
}

Pool::~Pool() {
  HALAY_ASSERT(counters_.in_use_bytes == 0);
  for (auto& [room_bytes, blocks] : free_) {
    for (const FreeBlock& block : blocks) std::free(block.data);
  }
}

Result<Block> Pool::take(size_t size_bytes) {
  if (size_bytes == 0) return Block();
  const size_t room_bytes = size_class(size_bytes);
  void* data = nullptr;
  const auto found = free_.find(room_bytes);
  if (found != free_.end() && !found->second.empty()) {
    // The one used last is the likeliest to be in a cache.
    data = found->second.back().data;
    found->second.pop_back();
    ++counters_.reused;
  } else {
    if (room_bytes != 0) data = std::aligned_alloc(kAlignment, room_bytes);
    if (data == nullptr) return Status::no_memory(text("no memory for ", size_bytes, " bytes of scratch"));
    counters_.held_bytes += room_bytes;
    counters_.held_bytes_peak = std::max(counters_.held_bytes_peak, counters_.held_bytes);
  }
  ++counters_.taken;
  counters_.in_use_bytes += room_bytes;
  return Block(this, data, size_bytes, room_bytes);
}

void Pool::give_back(void* data, size_t room_bytes) {
  counters_.in_use_bytes -= room_bytes;
  free_[room_bytes].push_back({data, given_back_++, Time::never()});
  while (free_bytes() > options_.keep_bytes) release_oldest();
}

void Pool::release_oldest() {
  auto oldest = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second.empty()) continue;
    if (oldest == free_.end() || it->second.front().given_back < oldest->second.front().given_back) oldest = it;
  }
  HALAY_ASSERT(oldest != free_.end());
  std::free(oldest->second.front().data);
  oldest->second.erase(oldest->second.begin());
  counters_.held_bytes -= oldest->first;
}

void Pool::trim(Time now) {
  for (auto& [room_bytes, blocks] : free_) {
    const size_t before = blocks.size();
    std::erase_if(blocks, [&](FreeBlock& block) {
      if (block.seen_free == Time::never()) block.seen_free = now;
      if (now < block.seen_free.plus_ms(options_.keep_ms)) return false;
      std::free(block.data);
      return true;
    });
    counters_.held_bytes -= (before - blocks.size()) * room_bytes;
  }
  next_trim_ = now.plus_ms(options_.keep_ms);
}

}  // namespace halay::memory
