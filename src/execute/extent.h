// Extent: bytes that count as one run but may lie in several pieces, such as the tensors of a fused Batch.
// Thread: one at a time.   Owns: the list of pieces, not their memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/check.h"

namespace halay::execute {

class Extent {
 public:
  void clear() {
    pieces_.clear();
    size_bytes_ = 0;
  }
  // Memory that is only read comes in as const too: which Regions are written is the Schedule's word.
  void add(const void* data, size_t size_bytes) {
    if (size_bytes == 0) return;
    HALAY_ASSERT(data != nullptr);
    auto* begin = static_cast<std::byte*>(const_cast<void*>(data));
    if (!pieces_.empty() && pieces_.back().data + (size_bytes_ - pieces_.back().offset) == begin) {
      size_bytes_ += size_bytes;  // it continues the last piece
      return;
    }
    pieces_.push_back({size_bytes_, begin});
    size_bytes_ += size_bytes;
  }
  void set(const void* data, size_t size_bytes) {
    clear();
    add(data, size_bytes);
  }

  size_t size_bytes() const { return size_bytes_; }
  size_t piece_count() const { return pieces_.size(); }

  // What lies together from `offset` on, which must be below size_bytes().
  std::span<std::byte> from(size_t offset) const {
    HALAY_ASSERT(offset < size_bytes_);
    size_t index = 0;
    if (pieces_.size() > 1) {
      const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                          [](size_t at, const Piece& piece) { return at < piece.offset; });
      index = static_cast<size_t>(after - pieces_.begin()) - 1;
    }
    const size_t end = index + 1 < pieces_.size() ? pieces_[index + 1].offset : size_bytes_;
    return {pieces_[index].data + (offset - pieces_[index].offset), end - offset};
  }

 private:
  struct Piece {
    size_t offset;
    std::byte* data;
  };
  std::vector<Piece> pieces_;
  size_t size_bytes_ = 0;
};

}  // namespace halay::execute
