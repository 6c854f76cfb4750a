// World: one epoch of the engine. All ways to the other ranks, all process sets, everything that runs; it is built once
// and dies as a whole. drive() is the one step function: intake -> control -> fusion -> execute -> completion. Thread:
// whoever holds the token, which every function takes. Owns: the Fabric, the Executor, the process sets.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/name_table.h"
#include "engine/handle_table.h"
#include "engine/intake.h"
#include "engine/process_set.h"
#include "engine/token.h"
#include "execute/executor.h"
#include "trace/timeline.h"
#include "transport/fabric.h"
#include "types/world_info.h"

namespace halay::engine {

// What the engine lends to its worlds; outlives them.
struct WorldParts {
  const Config& config;
  const Clock& clock;
  NameTable& names;
  HandleTable& handles;
  Intake& intake;
  trace::Timeline& timeline;
};

struct WorldCounters {
  uint64_t operations = 0;  // completed well
  uint64_t failures = 0;    // completed with an error
  uint64_t rounds = 0;
};

class World final : private transport::FrameSink {
 public:
  World(WorldParts parts, std::unique_ptr<transport::Fabric> fabric);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  transport::Fabric& fabric() { return *fabric_; }

  // One round of everything that can be done now; true if anything moved.
  bool drive(EngineToken& token, Time now);
  // When drive() has something to do although nothing comes.
  Time next_deadline(EngineToken& token) const;
  // Looks once more at what needs no message to arrive (flags of windows), between prepare_wait() and wait().
  bool glance(EngineToken& token, Time now);
  // The coming wait is for something undecided of this set: its decider shall not wait for company.
  void urge(EngineToken& token, SetId set, Time now);

  // Building a process set: begin, drive until it is active (or the world is lost). `ranks` are ascending and hold this
  // rank.
  ProcessSet& begin_set(EngineToken& token, SetId id, std::span<const int32_t> ranks);
  // Ranks that have not greeted yet.
  std::vector<int32_t> set_missing(EngineToken& token, SetId id) const;
  void end_set(EngineToken& token, SetId id);
  const ProcessSet* find_set(EngineToken& token, SetId id) const;

  // This rank ends: tells all others. `clean`: it leaves nothing unfinished.
  void say_goodbye(EngineToken& token, bool clean);
  // All others have heard the goodbye, or are gone. For threads without the token.
  bool goodbye_heard() const { return goodbye_heard_.load(std::memory_order_acquire); }
  // Ends the world here, without telling the others: everything pending fails with `why`.
  void close(EngineToken& token, Status why);
  // Ends the world on all ranks.
  void lose(EngineToken& token, Status why);
  const Status& status() const { return status_; }
  // For threads without the token.
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // Grows with whatever a thread may be waiting for: an operation or a call has ended, a set is active, a goodbye was
  // heard, the world is lost. When it changes, waiters have something to look at.
  uint64_t news() const { return news_; }

  std::string describe(EngineToken& token, Time now) const;
  std::string stats(EngineToken& token) const;

 private:
  void on_frame(int32_t rank, transport::FrameKind kind, uint64_t lane, std::span<const std::byte> payload) override;
  void on_control(int32_t rank, uint64_t lane, std::span<const std::byte> payload);
  void on_hello(int32_t rank, uint64_t lane, std::span<const std::byte> payload);
  void on_goodbye(int32_t rank, std::span<const std::byte> payload);
  void on_abort(int32_t rank, std::span<const std::byte> payload);

  bool take_intents(EngineToken& token, Time now);
  void take_operation(Operation& operation, Time now);
  bool step_sets(Time now);
  void settle_and_lose(EngineToken& token, Time now);
  void send_outgoing(ProcessSet& set);
  // False if there is no room for a result: then the world cannot go on.
  bool run_list(ProcessSet& set, const DecisionList& list, Time now);
  void start_batch(ProcessSet& set, Batch batch, Time now);
  bool finish_batches(Time now);
  void try_activate(ProcessSet& set);
  void note_goodbyes();
  void complete(Operation& operation, Status status);
  void flush_completed();
  void fail_everything();
  ProcessSet* set_of_lane(uint64_t lane);

  WorldParts parts_;
  std::unique_ptr<transport::Fabric> fabric_;
  std::unique_ptr<execute::Executor> executor_;
  std::map<SetId, std::unique_ptr<ProcessSet>> sets_;
  std::unordered_map<uint64_t, ProcessSet*> lanes_;
  // Frames of process sets that this rank has not begun to build.
  struct EarlyFrame {
    int32_t rank;
    transport::FrameKind kind;
    std::vector<std::byte> payload;
  };
  std::unordered_map<uint64_t, std::vector<EarlyFrame>> early_;
  std::unordered_map<uint64_t, uint64_t> lanes_of_ranks_;  // how many sets of these ranks were begun, by hash
  // Operations of Batches that run, by batch number.
  struct RunningBatch {
    std::vector<Operation*> operations;
    int32_t last_joined = -1;
  };
  std::unordered_map<uint64_t, RunningBatch> running_;
  uint64_t next_batch_ = 1;
  std::vector<bool> left_;           // by rank: said goodbye
  std::vector<bool> knows_goodbye_;  // by rank: has heard this rank's goodbye
  struct Completed {
    Operation* operation;
    Status status;
  };
  std::vector<Completed> completed_;  // of this round: all names are given free before any is seen as done
  std::vector<Operation*> freed_;
  std::vector<Intent> intents_;
  std::vector<execute::Finished> finished_;
  Status status_;  // not ok: the world is lost
  std::atomic<bool> lost_{false};
  std::atomic<bool> goodbye_heard_{false};
  Status pending_loss_;             // found inside a callback; acted on after it
  std::vector<std::byte> verdict_;  // the abort that is passed on, in the words of the rank that found the reason
  WorldCounters counters_;
  uint64_t news_ = 0;
};

}  // namespace halay::engine
