// Hands out Operations and finds them by handle. A handle is a generation and a slot, so a late or invented one hits
// nothing. Thread: any.   Owns: all Operations; slots are reused, never freed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/annotations.h"
#include "engine/operation.h"

namespace halay::engine {

class HandleTable {
 public:
  HandleTable() = default;
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // A pending Operation with a new handle. Null when 2^24 are alive.
  Operation* open();
  // Null for a handle that is unknown, released or of an older generation.
  Operation* find(Handle handle) const;
  // Gives an operation back that was never queued.
  void cancel(Operation& operation);

  // The operation has ended. Reports it to next_completed() callers if they exist.
  void complete(Operation& operation, Status status);
  // Status of a done operation; invalid_argument for an unknown handle.
  Status status_of(Handle handle) const;
  // Calls `use` on a done operation that nobody can release meanwhile.
  Status with_done(Handle handle, const std::function<Status(Operation&)>& use);
  // The user will not ask again. Frees a done one now, a pending one when it ends. Unknown handles are ignored.
  void release(Handle handle);

  // Completions are collected from the first call on, with a list of those ended since.
  size_t take_completed(std::span<Handle> out);
  bool has_completed() const { return completed_count_.load(std::memory_order_acquire) != 0; }

  // All pending ones, oldest slots first.
  std::vector<Operation*> pending() const;
  size_t open_count() const;

 private:
  static constexpr size_t kSlabSize = 256;
  static constexpr size_t kSlabCount = 1 << 16;
  struct Slab {
    std::array<Operation, kSlabSize> operations;
  };

  void free_slot(Operation& operation) HALAY_REQUIRES(mutex_);

  // Read without the lock: a slab, once there, stays.
  std::unique_ptr<std::atomic<Slab*>[]> slabs_ = std::make_unique<std::atomic<Slab*>[]>(kSlabCount);
  mutable Mutex mutex_;
  size_t slab_count_ HALAY_GUARDED_BY(mutex_) = 0;
  std::vector<Operation*> free_ HALAY_GUARDED_BY(mutex_);
  size_t open_count_ HALAY_GUARDED_BY(mutex_) = 0;
  bool report_completed_ HALAY_GUARDED_BY(mutex_) = false;
  std::deque<Handle> completed_ HALAY_GUARDED_BY(mutex_);
  std::atomic<size_t> completed_count_{0};
};

}  // namespace halay::engine
