#include "engine/handle_table.h"

#include <algorithm>

#include "base/text.h"

namespace halay::engine {
namespace {

constexpr uint64_t kSlotMask = (uint64_t{1} << 48) - 1;

}  // namespace

HandleTable::~HandleTable() {
  for (size_t i = 0; i < kSlabCount; ++i) {
    Slab* slab = slabs_[i].load(std::memory_order_relaxed);
    if (slab == nullptr) break;
    delete slab;
  }
}

Operation* HandleTable::open() {
  MutexLock lock(mutex_);
  if (free_.empty()) {
    if (slab_count_ == kSlabCount) return nullptr;
    auto slab = std::make_unique<Slab>();
    for (size_t i = kSlabSize; i-- > 0;) {
      // Slot numbers start at 1, so that no handle is 0.
      slab->operations[i].handle = slab_count_ * kSlabSize + i + 1;
      free_.push_back(&slab->operations[i]);
    }
    slabs_[slab_count_++].store(slab.release(), std::memory_order_release);
  }
  Operation* operation = free_.back();
  free_.pop_back();
  ++open_count_;
  operation->handle += uint64_t{1} << 48;  // wraps after 65536 lives of one slot
  operation->decided.store(false, std::memory_order_relaxed);
  operation->released = false;
  operation->reported = report_completed_;
  operation->state.store(OperationState::pending, std::memory_order_release);
  return operation;
}

Operation* HandleTable::find(Handle handle) const {
  const uint64_t slot = handle & kSlotMask;
  if (slot == 0 || slot > kSlabCount * kSlabSize) return nullptr;
  Slab* slab = slabs_[(slot - 1) / kSlabSize].load(std::memory_order_acquire);
  if (slab == nullptr) return nullptr;
  Operation* operation = &slab->operations[(slot - 1) % kSlabSize];
  if (operation->state.load(std::memory_order_acquire) == OperationState::free) return nullptr;
  return operation->handle == handle ? operation : nullptr;
}

void HandleTable::free_slot(Operation& operation) {
  operation.state.store(OperationState::free, std::memory_order_release);
  operation.owned = {};
  operation.bundle.reset();
  operation.result.data = nullptr;
  operation.result.received_splits.clear();
  operation.submission.request.splits.clear();
  operation.status = {};
  --open_count_;
  free_.push_back(&operation);
}

void HandleTable::cancel(Operation& operation) {
  MutexLock lock(mutex_);
  free_slot(operation);
}

void HandleTable::complete(Operation& operation, Status status) {
  MutexLock lock(mutex_);
  HALAY_ASSERT(operation.state.load(std::memory_order_relaxed) == OperationState::pending);
  operation.status = std::move(status);
  operation.state.store(OperationState::done, std::memory_order_release);
  if (operation.reported && !operation.released) {
    completed_.push_back(operation.handle);
    completed_count_.store(completed_.size(), std::memory_order_release);
  }
  if (operation.released) free_slot(operation);
}

Status HandleTable::status_of(Handle handle) const {
  MutexLock lock(mutex_);
  const Operation* operation = find(handle);
  if (operation == nullptr) return Status::invalid_argument(text("handle ", handle, " is not known; was it released?"));
  return operation->status;
}

Status HandleTable::with_done(Handle handle, const std::function<Status(Operation&)>& use) {
  MutexLock lock(mutex_);
  Operation* operation = find(handle);
  if (operation == nullptr) return Status::invalid_argument(text("handle ", handle, " is not known; was it released?"));
  if (operation->state.load(std::memory_order_acquire) != OperationState::done) {
    return Status::invalid_argument(text("handle ", handle, " has not completed; wait for it first"));
  }
  if (!operation->status.ok()) return operation->status;
  return use(*operation);
}

void HandleTable::release(Handle handle) {
  MutexLock lock(mutex_);
  Operation* operation = find(handle);
  if (operation == nullptr) return;
  if (operation->state.load(std::memory_order_relaxed) == OperationState::done) {
    free_slot(*operation);
  } else {
    operation->released = true;
  }
}

size_t HandleTable::take_completed(std::span<Handle> out) {
  MutexLock lock(mutex_);
  report_completed_ = true;
  const size_t count = std::min(out.size(), completed_.size());
  std::copy_n(completed_.begin(), count, out.begin());
  completed_.erase(completed_.begin(), completed_.begin() + static_cast<std::ptrdiff_t>(count));
  completed_count_.store(completed_.size(), std::memory_order_release);
  return count;
}

std::vector<Operation*> HandleTable::pending() const {
  MutexLock lock(mutex_);
  std::vector<Operation*> out;
  for (size_t s = 0; s < slab_count_; ++s) {
    for (Operation& operation : slabs_[s].load(std::memory_order_relaxed)->operations) {
      if (operation.state.load(std::memory_order_relaxed) == OperationState::pending) out.push_back(&operation);
    }
  }
  return out;
}

size_t HandleTable::open_count() const {
  MutexLock lock(mutex_);
  return open_count_;
}

}  // namespace halay::engine
