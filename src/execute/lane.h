// Lane: the ordered queue of Batches of one process set, one running at a time. See executor.h.
// Thread: whoever holds the engine's token.   Owns: its queue, what its running Batch needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/plan.h"
#include "execute/executor.h"
#include "execute/member.h"
#include "execute/plan_cache.h"
#include "execute/schedule_run.h"
#include "execute/surroundings.h"
#include "memory/pool.h"

namespace halay::execute {

// What all lanes of an Executor share. Outlives them.
struct LaneShared {
  transport::Fabric& fabric;
  const ExecutorOptions& options;
  NameTable& names;
  trace::Timeline& timeline;
  // A training step repeats a few dozen Batches on a handful of process sets.
  PlanCache plans{512};
  memory::Pool pool{memory::PoolOptions{}};
  ExecutorCounters counters{};
  std::vector<Finished> finished{};
  Status lost{};  // not ok: a lane found that the world cannot go on
};

class Lane {
 public:
  Lane(LaneSpec spec, LaneShared& shared);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  uint64_t id() const { return spec_.lane; }
  bool idle() const { return phase_ == Phase::idle && queue_.empty(); }
  void enqueue(BoundBatch bound) { queue_.push_back(std::move(bound)); }
  // As far as it goes, but not much more than a MiB at a time, so that other lanes get their turn. True if it got
  // further.
  bool progress(Time now);
  // When the running Batch is overdue.
  Time deadline() const;
  // The text of the verdict, once it is overdue: tensor, lane, and whom it waits for.
  Status overdue() const;
  // Everything queued or running ends with `status`; memory is not touched any more.
  void abandon(const Status& status);
  // What runs, in words; empty if nothing does.
  std::string describe() const;

 private:
  // What is left to do for the running Batch, in this order.
  enum class Phase : uint8_t { idle, tiny, pack, run, unpack };

  void begin_batch(Time now);
  bool moves_nothing() const;
  bool fits_tiny() const;
  collective::Problem problem() const;
  void enter(Time now);
  void enter_tiny(Time now);
  void enter_schedule(Time now);
  void bind_user_memory();
  Status bind_scratch();
  void begin_run(Time now);
  Outcome advance(Time now, size_t& budget, bool& moved);
  Outcome advance_tiny(Time now);
  Outcome advance_copy(const Extent& to, const Extent& from, size_t& budget);
  void after_run(Time now);
  void end_batch(const Status& status, Time now);
  int waits_for_rank() const;
  std::string title() const;
  void begin_operation(Time now);
  void end_operation(Time now);
  void begin_activity(trace::Activity activity, Time now);
  void end_activity(Time now);
  trace::Activity main_activity() const;

  const LaneSpec spec_;
  LaneShared& shared_;
  const LaneSurroundings surroundings_;
  std::vector<Member> lane_members_;
  std::deque<BoundBatch> queue_;

  // Agreed numbers: windows are used only where all members take part, so all count alike.
  uint64_t tiny_number_ = 0;    // of operations on the tiny path
  uint64_t window_number_ = 0;  // of Schedules that used windows; they use the halves in turn
  uint64_t flag_base_ = 0;

  // The running Batch.
  Phase phase_ = Phase::idle;
  BoundBatch bound_;
  Time started_;
  std::vector<Member> members_;  // those that take part
  int me_ = 0;                   // index in members_
  bool windows_ = false;         // it may use them
  std::shared_ptr<const Plan> plan_;
  ScheduleRun run_;
  Extent user_input_, user_output_;
  Buffers buffers_;
  memory::Block fused_, staging_, acc_;
  size_t copied_bytes_ = 0;  // by pack or unpack so far
  std::vector<const void*> sources_;
};

}  // namespace halay::execute
