// The windows of all process sets on one rank: its own, and those of the members that have arrived.
// Thread: whoever holds the engine's token.   Owns: the memory, or its share of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "region/segment.h"
#include "transport/fabric.h"

namespace halay::transport {

// Memory of one window: flags, two lines, then the data area.
class Window {
 public:
  static size_t bytes_for(size_t data_bytes);
  // Heap memory, for ranks of one process.
  static Result<std::shared_ptr<Window>> on_heap(size_t data_bytes);
  static Result<std::shared_ptr<Window>> in_segment(region::Segment segment);

  WindowView view() const;
  region::Segment& segment() { return segment_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> heap_;
  region::Segment segment_;
};

class Windows {
 public:
  void open(uint64_t lane, int32_t me, std::span<const int32_t> ranks, std::shared_ptr<Window> mine);
  // From a member that may be ahead of us, or behind: what belongs to a closed lane is dropped.
  void arrived(uint64_t lane, int32_t rank, std::shared_ptr<Window> window);
  bool ready(uint64_t lane) const;
  // Null views for what has not arrived.
  WindowView view(uint64_t lane, int32_t rank) const;
  std::shared_ptr<Window> find(uint64_t lane, int32_t rank) const;
  std::span<const int32_t> ranks(uint64_t lane) const;
  void close(uint64_t lane);
  Status make_private();

 private:
  struct Entry {
    std::vector<int32_t> ranks;  // empty: not opened here yet
    std::map<int32_t, std::shared_ptr<Window>> by_rank;
  };
  std::map<uint64_t, Entry> lanes_;
  std::map<uint64_t, std::vector<int32_t>> late_;  // of closed lanes: whose windows are still to come
};

// The size where the user left it open: 4 MiB for up to 4 ranks of a machine, falling.
size_t window_bytes_for(size_t rank_count);

}  // namespace halay::transport
