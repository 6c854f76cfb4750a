// Intake: where user threads leave operations for whoever holds the token. Never blocks and never is full (rule 4); knows
// which names are in flight, so that a duplicate is refused before anything is queued.
// Thread: any.   Owns: names in flight, bundles that wait for their turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
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
  Operation* operation = nullptr;    // operation, join
  SetId set = 0;                     // urge
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
  // From now on every submit returns `why` (ok: no longer). Opens all again when the engine starts anew.
  void refuse_all(Status why) HALAY_EXCLUDES(mutex_);

  // All or nothing; out[i] is the operation of submissions[i]. Two of one group may not have the same name.
  Status submit(std::span<const Submission> submissions, Operation** out) HALAY_EXCLUDES(mutex_);
  Status join(Operation** out) HALAY_EXCLUDES(mutex_);
  void urge(SetId set) HALAY_EXCLUDES(mutex_);
  void call(const std::function<void(EngineToken&)>* call) HALAY_EXCLUDES(mutex_);

  // The names of these operations are free again; what waited for them is queued.
  void finished(std::span<Operation* const> operations) HALAY_EXCLUDES(mutex_);
  // Operations of the set that are submitted and not finished, waiting bundles included.
  size_t in_flight(SetId set) const HALAY_EXCLUDES(mutex_);
  // Takes the bundles that wait for a name out, when the world is lost.
  std::vector<Operation*> take_waiting() HALAY_EXCLUDES(mutex_);

  bool empty() const { return !filled_.load(std::memory_order_acquire); }
  // Swaps the queue into `out` (which it clears first).
  void take(std::vector<Intent>& out) HALAY_EXCLUDES(mutex_);
  uint64_t operations_submitted() const { return submitted_.load(std::memory_order_relaxed); }

 private:
  struct SetNames {
    std::vector<uint8_t> in_flight;  // by NameId
    size_t operations = 0;
    bool joined = false;
  };
  using Bundle = std::vector<Operation*>;

  Status check(SetNames& set, std::span<const Submission> submissions, bool& must_wait) HALAY_REQUIRES(mutex_);
  bool is_free(SetNames& set, const Bundle& bundle) const HALAY_REQUIRES(mutex_);
  void enqueue(SetNames& set, const Bundle& bundle) HALAY_REQUIRES(mutex_);
  void push(const Intent& intent) HALAY_REQUIRES(mutex_);

  HandleTable& handles_;
  NameTable& names_;
  mutable Mutex mutex_;
  Status refusal_ HALAY_GUARDED_BY(mutex_);
  std::unordered_map<SetId, SetNames> sets_ HALAY_GUARDED_BY(mutex_);
  std::vector<Intent> queue_ HALAY_GUARDED_BY(mutex_);
  std::deque<Bundle> waiting_ HALAY_GUARDED_BY(mutex_);
  std::atomic<bool> filled_{false};
  std::atomic<uint64_t> submitted_{0};
};

}  // namespace halay::engine
