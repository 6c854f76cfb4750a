// Intake: where user threads leave operations for whoever holds the token. Never blocks and never is full (rule 4);
// knows which names are in flight, so that a duplicate is refused before anything is queued. Thread: any.   Owns: who
// holds a name, and who waits for it, in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/annotations.h"
#include "base/name_table.h"
#include "engine/handle_table.h"
#include "engine/operation.h"
#include "engine/token.h"

namespace halay::engine {

// What is taken out, in order of arrival.
struct Intent {
  enum class Kind : uint8_t { operation, join, urge, call } kind = Kind::operation;
  Operation* operation = nullptr;                           // operation, join
  SetId set = 0;                                            // urge
  const std::function<void(EngineToken&)>* call = nullptr;  // runs under the token; lives until it has run
};

class Intake {
 public:
  Intake(HandleTable& handles, NameTable& names) : handles_(handles), names_(names) {}
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  // A set that may be submitted to, and those that may not any more: `why` is what submitters get.
  void open_set(SetId set) HALAY_EXCLUDES(mutex_);
  void close_set(SetId set) HALAY_EXCLUDES(mutex_);
  // From now on every submit returns `why`.
  void refuse_all(Status why) HALAY_EXCLUDES(mutex_);
  // For a new world: nothing is queued, no set is open, nothing is refused.
  void reset() HALAY_EXCLUDES(mutex_);

  // All or nothing; out[i] is the operation of submissions[i]. Two of one group may not have the same name.
  Status submit(std::span<const Submission> submissions, Operation** out) HALAY_EXCLUDES(mutex_);
  Status join(Operation** out) HALAY_EXCLUDES(mutex_);
  void urge(SetId set) HALAY_EXCLUDES(mutex_);
  void call(const std::function<void(EngineToken&)>* call) HALAY_EXCLUDES(mutex_);

  // The names of these operations are free again; what waited for them is queued.
  void finished(std::span<Operation* const> operations) HALAY_EXCLUDES(mutex_);
  // Operations of the set that are submitted and not finished, waiting bundles included.
  size_t in_flight(SetId set) const HALAY_EXCLUDES(mutex_);
  bool empty() const { return !filled_.load(std::memory_order_acquire); }
  // Swaps the queue into `out` (which it clears first).
  void take(std::vector<Intent>& out) HALAY_EXCLUDES(mutex_);
  uint64_t operations_submitted() const { return submitted_.load(std::memory_order_relaxed); }

 private:
  // A name is held by one operation at a time; the others stand in line behind it (Operation::next_in_line).
  struct Line {
    Operation* holder = nullptr;
    Operation* last = nullptr;
  };
  struct OpenSet {
    std::vector<Line> lines;  // by NameId
    size_t operations = 0;
    bool joined = false;
  };

  Status check(OpenSet& set, std::span<const Submission> submissions) HALAY_REQUIRES(mutex_);
  void stand_in_line(OpenSet& set, Operation& operation) HALAY_REQUIRES(mutex_);
  void leave_line(OpenSet& set, const Operation& operation) HALAY_REQUIRES(mutex_);
  void holds_name(Operation& operation) HALAY_REQUIRES(mutex_);
  void push(const Intent& intent) HALAY_REQUIRES(mutex_);

  HandleTable& handles_;
  NameTable& names_;
  mutable Mutex mutex_;
  Status refusal_ HALAY_GUARDED_BY(mutex_);
  std::unordered_map<SetId, OpenSet> sets_ HALAY_GUARDED_BY(mutex_);
  std::vector<Intent> queue_ HALAY_GUARDED_BY(mutex_);
  std::atomic<bool> filled_{false};
  std::atomic<uint64_t> submitted_{0};
};

}  // namespace halay::engine
