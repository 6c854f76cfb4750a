// Operation: one submitted tensor from submit to release; what a handle stands for.
// Thread: the submitter until it is queued; then whoever holds the token until `done`; then any, through the
// HandleTable. Owns: an engine-owned result until it is detached.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "execute/executor.h"
#include "memory/owned_buffer.h"
#include "types/request.h"

namespace halay::engine {

using Handle = uint64_t;  // 16 bits generation, 48 bits slot; 0 is none
using SetId = uint32_t;   // as this process numbers process sets; 0 is the world

inline constexpr uint32_t kUrgent = 1, kRepeatable = 2;  // HALAY_REQUEST_*

enum class OperationState : uint32_t { free, pending, done };

// What a user asks for: a Request, and where the tensor lies.
struct Submission {
  Request request;
  SetId set = 0;
  uint32_t flags = 0;
  const void* input = nullptr;
  void* output = nullptr;  // null: the engine owns the result
  size_t output_bytes = 0;
};

struct OperationResult {
  void* data = nullptr;
  size_t size_bytes = 0;
  DType dtype = DType::float32;
  Shape shape;
  std::vector<int64_t> received_splits;  // alltoall: rows from each member
  int32_t last_joined = -1;              // join
};

struct Operation;

// The operations of one group wait together: they are queued when each of them holds its name.
struct Bundle {
  std::vector<Operation*> operations;
  size_t without_name = 0;
};

struct Operation {
  std::atomic<OperationState> state{OperationState::free};
  std::atomic<Handle> handle{0};     // atomic, because an old handle may be looked up while a slot gets its next life
  std::atomic<bool> decided{false};  // in a list; a waiter need not urge it
  bool released = false;             // nobody will ask for it again; guarded by the table's lock
  bool reported = false;             // to halay_next_completed
  Submission submission;
  std::shared_ptr<Bundle> bundle;     // null: not in a group; guarded by the intake's lock, as the next
  Operation* next_in_line = nullptr;  // waits for the same name
  Time submitted{};
  OperationResult result;
  execute::Binding binding;
  memory::OwnedBuffer owned;  // holds result.data where the engine owns it
  Status status;
};

}  // namespace halay::engine
