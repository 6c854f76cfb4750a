// A ring of bytes from one writer to one reader, in raw memory that both see (of one process or two).
//
// The memory: one line for the reader's two counters, kCellCount cells of one line each, then the bulk area. A write
// fills the next cell: what fits lies in the cell itself, beside its tag, so that a small frame is handed over with one
// line; more goes to the bulk area first. The tag (number of the cell + 1, and how many bytes are in it) is stored
// last, with release: a killed writer never shows half a cell. The reader gives cells and bulk bytes back by its own
// counters; a writer looks at them only when its last look says that it is full, and an empty poll reads one line, the
// next cell.
//
// Thread: one for each end.   Owns: nothing; the memory must outlive both ends, and be zero before the first use.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"

namespace halay::region {

inline constexpr size_t kLineBytes = 128;  // two cache lines: processors fetch them in pairs

class RingMemory {
 public:
  static constexpr uint64_t kCellCount = 64;
  static constexpr size_t kInlineBytes = kLineBytes - 16;

  struct alignas(kLineBytes) ReaderLine {
    std::atomic<uint64_t> cells_taken{0};
    std::atomic<uint64_t> bulk_taken{0};
  };
  struct alignas(kLineBytes) Cell {
    std::atomic<uint64_t> tag{0};  // (number + 1) << 8 | bytes inside
    uint64_t bulk_bytes = 0;
    std::byte inside[kInlineBytes];
  };

  static constexpr size_t bytes_for(size_t bulk_capacity) {
    return sizeof(ReaderLine) + kCellCount * sizeof(Cell) + bulk_capacity;
  }

  // bulk_capacity: a power of two. memory: aligned to kLineBytes.
  RingMemory(std::byte* memory, size_t bulk_capacity)
      : reader(*reinterpret_cast<ReaderLine*>(memory)),
        cells(reinterpret_cast<Cell*>(memory + sizeof(ReaderLine))),
        bulk(memory + sizeof(ReaderLine) + kCellCount * sizeof(Cell)),
        capacity(bulk_capacity) {
    HALAY_ASSERT(std::has_single_bit(bulk_capacity) && reinterpret_cast<uintptr_t>(memory) % kLineBytes == 0);
  }

  static constexpr uint64_t tag_of(uint64_t number, size_t inside) { return (number + 1) << 8 | inside; }
  Cell& cell(uint64_t number) const { return cells[number % kCellCount]; }

  ReaderLine& reader;
  Cell* cells;
  std::byte* bulk;
  size_t capacity;
};

class RingWriter {
 public:
  RingWriter(std::byte* memory, size_t bulk_capacity)
      : ring_(memory, bulk_capacity), most_at_once_(std::max<size_t>(bulk_capacity / 4, 1)) {}

  // Takes a prefix of the concatenated parts; returns how many bytes.
  size_t write(std::span<const std::span<const std::byte>> parts) {
    Source source{parts, total_bytes(parts)};
    size_t written = 0;
    while (source.left > 0) {
      const size_t now = write_cell(source);
      if (now == 0) break;
      written += now;
    }
    return written;
  }

  // Looks afresh at the reader's counters.
  bool has_room() {
    look();
    return cells_free() > 0 && bulk_free() > 0;
  }

 private:
  struct Source {
    std::span<const std::span<const std::byte>> parts;
    size_t left = 0;    // bytes in all parts
    size_t offset = 0;  // in the first part

    std::span<const std::byte> part() {
      while (parts.front().size() == offset) parts = parts.subspan(1), offset = 0;
      return parts.front().subspan(offset);
    }
    void take(std::byte* to, size_t count) {
      while (count > 0) {
        const std::span<const std::byte> from = part();
        const size_t now = std::min(count, from.size());
        std::memcpy(to, from.data(), now);
        to += now, count -= now, left -= now, offset += now;
      }
    }
  };

  static size_t total_bytes(std::span<const std::span<const std::byte>> parts) {
    size_t total = 0;
    for (const auto& part : parts) total += part.size();
    return total;
  }

  size_t write_cell(Source& source) {
    if (cells_free() == 0) look();
    if (cells_free() == 0) return 0;
    // A short first part (a header) goes inside, so that what follows is copied in whole lines.
    const size_t first = source.part().size();
    const size_t inside = source.left <= RingMemory::kInlineBytes ? source.left
                          : first <= RingMemory::kInlineBytes     ? first
                                                                  : 0;
    const size_t outside = std::min(source.left - inside, most_at_once_);
    if (bulk_free() < outside) look();
    const size_t bulk = std::min(outside, bulk_free());
    if (inside + bulk == 0) return 0;

    RingMemory::Cell& cell = ring_.cell(cell_);
    source.take(cell.inside, inside);
    take_bulk(source, bulk);
    cell.bulk_bytes = bulk;
    cell.tag.store(RingMemory::tag_of(cell_, inside), std::memory_order_release);
    ++cell_;
    return inside + bulk;
  }

  void take_bulk(Source& source, size_t count) {
    while (count > 0) {
      const size_t at = bulk_ & (ring_.capacity - 1);
      const size_t now = std::min(count, ring_.capacity - at);
      source.take(ring_.bulk + at, now);
      bulk_ += now, count -= now;
    }
  }

  void look() {
    // Cells first: a cell is given back after its bulk.
    cells_taken_ = ring_.reader.cells_taken.load(std::memory_order_acquire);
    bulk_taken_ = ring_.reader.bulk_taken.load(std::memory_order_acquire);
  }
  uint64_t cells_free() const { return RingMemory::kCellCount - (cell_ - cells_taken_); }
  size_t bulk_free() const { return ring_.capacity - static_cast<size_t>(bulk_ - bulk_taken_); }

  RingMemory ring_;
  size_t most_at_once_;           // a quarter: the reader starts while the rest is being written
  uint64_t cell_ = 0, bulk_ = 0;  // written so far
  uint64_t cells_taken_ = 0, bulk_taken_ = 0;
};

class RingReader {
 public:
  RingReader(std::byte* memory, size_t bulk_capacity) : ring_(memory, bulk_capacity) {}

  // Gives what is there, at most into.size() bytes.
  size_t read(std::span<std::byte> into) {
    size_t done = 0;
    while (done < into.size() && open_cell()) {
      const size_t inside = std::min(inside_left_, into.size() - done);
      std::memcpy(into.data() + done, ring_.cell(cell_).inside + inside_at_, inside);
      inside_at_ += inside, inside_left_ -= inside, done += inside;
      if (inside_left_ == 0) done += read_bulk(into.subspan(done));
      if (inside_left_ + bulk_left_ == 0) close_cell();
    }
    return done;
  }

  bool empty() const { return !opened_ && ring_.cell(cell_).tag.load(std::memory_order_acquire) >> 8 != cell_ + 1; }
  // The writer's memory makes no sense; nothing more comes out.
  bool broken() const { return broken_; }

 private:
  bool open_cell() {
    if (opened_) return true;
    const RingMemory::Cell& cell = ring_.cell(cell_);
    const uint64_t tag = cell.tag.load(std::memory_order_acquire);
    if (tag >> 8 != cell_ + 1 || broken_) return false;
    inside_at_ = 0;
    inside_left_ = tag & 0xff;
    bulk_left_ = cell.bulk_bytes;
    broken_ = inside_left_ > RingMemory::kInlineBytes || bulk_left_ > ring_.capacity || inside_left_ + bulk_left_ == 0;
    opened_ = !broken_;
    return opened_;
  }

  size_t read_bulk(std::span<std::byte> into) {
    size_t done = 0;
    while (bulk_left_ > 0 && done < into.size()) {
      const size_t at = bulk_ & (ring_.capacity - 1);
      const size_t now = std::min({bulk_left_, into.size() - done, ring_.capacity - at});
      std::memcpy(into.data() + done, ring_.bulk + at, now);
      bulk_ += now, bulk_left_ -= now, done += now;
    }
    if (done > 0) ring_.reader.bulk_taken.store(bulk_, std::memory_order_release);
    return done;
  }

  void close_cell() {
    opened_ = false;
    ring_.reader.cells_taken.store(++cell_, std::memory_order_release);
  }

  RingMemory ring_;
  bool opened_ = false, broken_ = false;
  size_t inside_at_ = 0, inside_left_ = 0, bulk_left_ = 0;
  uint64_t cell_ = 0, bulk_ = 0;  // taken so far
};

}  // namespace halay::region
