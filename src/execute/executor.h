// Runs the Schedules of all lanes over a Fabric, side by side and never blocking: a lane that must wait costs the
// others nothing. Deadlines and aborts of running operations are checked here and nowhere else.
// Thread: whoever holds the engine's token.
// Owns: running Schedules, their private buffers, the cache of plans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "trace/timeline.h"
#include "transport/fabric.h"
#include "types/batch.h"

namespace halay::execute {

// One process set's ordered queue of Batches.
struct LaneSpec {
  uint64_t lane = 0;           // the same number on all members; also the lane of its frames
  std::vector<int32_t> ranks;  // world ranks by member
  int me = 0;
  bool windows = false;  // all members agreed to use windows
  std::string label;
};

// Where one tensor of a Batch lies. Output may be the input (in place). Both are null where this rank takes no part.
struct Binding {
  const void* input = nullptr;
  void* output = nullptr;
  size_t input_elems = 0;
  size_t output_elems = 0;
};

struct BoundBatch {
  uint64_t id = 0;  // the engine's number for it, given back when done
  Batch batch;
  std::vector<Binding> bindings;  // one for each of batch.tensors
};

struct Finished {
  uint64_t id = 0;
  Status status;
};

struct ExecutorOptions {
  int64_t op_deadline_ms = 1'800'000;
  bool reproducible = false;
  std::string force_allreduce_algorithm;  // "ring", or for other kinds too: "allreduce=ring,broadcast=binomial"
};

struct ExecutorCounters {
  uint64_t batches = 0;
  uint64_t tensors = 0;
  uint64_t bytes = 0;  // of user tensors
  uint64_t tiny = 0;   // batches on the hand-written path
  uint64_t plans_made = 0, plans_reused = 0;
  uint64_t scratch_bytes = 0;  // held now
  uint64_t scratch_bytes_peak = 0;
};

class Executor {
 public:
  Executor(transport::Fabric& fabric, ExecutorOptions options, NameTable& names, trace::Timeline& timeline);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void add_lane(LaneSpec spec);
  // Asserts that nothing of the lane runs.
  void remove_lane(uint64_t lane);
  bool lane_idle(uint64_t lane) const;

  void enqueue(uint64_t lane, BoundBatch batch, Time now);
  // Runs what can run; true if any step was made. Does not move the Fabric's bytes: the engine does that. Call it once
  // more after Fabric::prepare_wait() and before sleeping: flags of windows come without a frame.
  bool progress(Time now);
  // Moves the finished ones to the end of `out`.
  void take_finished(std::vector<Finished>& out);
  Time next_deadline() const;
  bool idle() const;
  // The world is lost: everything queued or running finishes with `status`, nothing is read or written any more.
  void abandon(const Status& status);
  // Not ok: the world is lost; the executor has abandoned everything by itself (a Batch overdue, a peer lost) or was
  // told to.
  const Status& status() const;
  // What runs and whom it waits for, in words, for verdicts.
  std::string describe() const;

  const ExecutorCounters& counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halay::execute
