#include "transport/windows.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>

#include "base/text.h"
#include "region/ring.h"
#include "types/schedule.h"

namespace halay::transport {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kFlagBytes = kFlagCount * region::kLineBytes;
constexpr size_t kLineCount = 2;
static_assert(kFlagBytes + kLineCount * region::kLineBytes <= kPageBytes);
static_assert(sizeof(std::atomic<uint64_t>) == 8 && std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

size_t window_bytes_for(size_t rank_count) {
  size_t bytes = size_t{4} << 20;
  for (size_t ranks = 4; ranks < rank_count && bytes > (size_t{256} << 10); ranks *= 2) bytes /= 2;
  return bytes;
}

size_t Window::bytes_for(size_t data_bytes) {
  return kPageBytes + (data_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

void Window::Free::operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{kPageBytes}); }

Result<std::shared_ptr<Window>> Window::on_heap(size_t data_bytes) {
  const size_t bytes = bytes_for(data_bytes);
  void* memory = ::operator new(bytes, std::align_val_t{kPageBytes}, std::nothrow);
  if (!memory) return Status::no_memory(text("a window of ", bytes, " bytes"));
  auto window = std::make_shared<Window>();
  window->heap_.reset(static_cast<std::byte*>(memory));
  std::memset(memory, 0, bytes);
  return window;
}

Result<std::shared_ptr<Window>> Window::in_segment(region::Segment segment) {
  auto window = std::make_shared<Window>();
  window->segment_ = std::move(segment);
  return window;
}

WindowView Window::view() const {
  std::byte* const memory = heap_ ? heap_.get() : segment_.data();
  return {memory + kPageBytes, memory + kFlagBytes, memory};
}

void Windows::open(uint64_t lane, int32_t me, std::span<const int32_t> ranks, std::shared_ptr<Window> mine) {
  Entry& entry = lanes_[lane];
  entry.ranks.assign(ranks.begin(), ranks.end());
  entry.by_rank[me] = std::move(mine);
}

void Windows::arrived(uint64_t lane, int32_t rank, std::shared_ptr<Window> window) {
  if (const auto late = late_.find(lane); late != late_.end()) {
    const auto owed = std::ranges::find(late->second, rank);
    if (owed != late->second.end()) {
      late->second.erase(owed);
      if (late->second.empty()) late_.erase(late);
      return;
    }
  }
  lanes_[lane].by_rank[rank] = std::move(window);
}

bool Windows::ready(uint64_t lane) const {
  const auto entry = lanes_.find(lane);
  if (entry == lanes_.end() || entry->second.ranks.empty()) return false;
  return std::ranges::all_of(entry->second.ranks, [&](int32_t rank) { return entry->second.by_rank.contains(rank); });
}

std::shared_ptr<Window> Windows::find(uint64_t lane, int32_t rank) const {
  const auto entry = lanes_.find(lane);
  if (entry == lanes_.end()) return nullptr;
  const auto window = entry->second.by_rank.find(rank);
  return window == entry->second.by_rank.end() ? nullptr : window->second;
}

WindowView Windows::view(uint64_t lane, int32_t rank) const {
  const std::shared_ptr<Window> window = find(lane, rank);
  return window ? window->view() : WindowView{};
}

std::span<const int32_t> Windows::ranks(uint64_t lane) const {
  const auto entry = lanes_.find(lane);
  if (entry == lanes_.end()) return {};
  return entry->second.ranks;
}

void Windows::close(uint64_t lane) {
  const auto entry = lanes_.find(lane);
  if (entry == lanes_.end()) return;
  for (int32_t rank : entry->second.ranks) {
    if (!entry->second.by_rank.contains(rank)) late_[lane].push_back(rank);
  }
  lanes_.erase(entry);
}

Status Windows::make_private() {
  for (auto& [lane, entry] : lanes_) {
    for (auto& [rank, window] : entry.by_rank) HALAY_RETURN_IF_ERROR(window->segment().make_private());
  }
  return {};
}

}  // namespace halay::transport
