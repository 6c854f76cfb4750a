// Engine: what the C ABI stands on. An object: N of them run in one process.
//
// Whoever waits, works: a thread in wait() takes the token if it is free and drives the world until its handle is done,
// so no wake-up lies on the way of a synchronous call. When nobody waits, the engine thread sleeps in one epoll and
// wakes on submissions, doorbells, sockets and deadlines; it never polls on a cycle. How they hand over:
// engine/charge.h. Thread: any, but the destructor.   Owns: the engine thread, the world, handles, names.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/name_table.h"
#include "base/status.h"
#include "engine/charge.h"
#include "engine/handle_table.h"
#include "engine/intake.h"
#include "engine/world.h"
#include "trace/timeline.h"
#include "transport/fabric.h"
#include "types/world_info.h"

namespace halay::engine {

struct EngineOptions {
  Config config;
  // Tests run many engines in one process: they meet here (transport "inproc").
  std::shared_ptr<transport::InprocHub> hub;
  const Clock* clock = nullptr;  // null: the machine's
};

class Engine {
 public:
  explicit Engine(EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // This rank's address for the out-of-band exchange; opens the door at the first call. Valid until start().
  Result<std::span<const std::byte>> address();
  Status start(int32_t rank, std::span<const std::vector<std::byte>> addresses);
  // The same through the launcher's store; a world of one where no launcher left its variables.
  Status start_from_environment();
  // Ends the world: says goodbye, fails what is pending. Not an error when there is none.
  Status shutdown();
  // Ends the world without a word, as a process that dies would: for tests.
  void vanish();
  // Ends the world on all ranks.
  Status abort(const std::string& reason);
  Result<WorldInfo> world_info() const;

  // Waits until all members have called; `ranks` in any order.
  Result<SetId> create_set(std::span<const int32_t> ranks);
  Status destroy_set(SetId set);
  struct SetInfo {
    std::vector<int32_t> ranks;  // ascending
    int32_t member = -1;
  };
  Result<SetInfo> query_set(SetId set) const;

  // All or nothing; more than one are a group. out[i] is the handle of submissions[i]. `root` of a Request is a rank of
  // the world here; it leaves as a member. Never blocks.
  Status submit(std::span<Submission> submissions, Handle* out);
  Result<Handle> join();
  Result<bool> poll(Handle handle);
  // The operation's own status; timeout leaves it alive. timeout_ms < 0: as long as the operation's own deadline.
  Status wait(Handle handle, int64_t timeout_ms);
  // Until all have ended; then the first failure in order of handles.
  Status wait_many(std::span<const Handle> handles, int64_t timeout_ms);
  // Waits for at least one completion; writes up to out.size() handles and returns how many.
  Result<size_t> next_completed(std::span<Handle> out, int64_t timeout_ms);
  Status with_done(Handle handle, const std::function<Status(Operation&)>& use) {
    return handles_.with_done(handle, use);
  }
  void release(Handle handle) { handles_.release(handle); }

  Status start_timeline(const std::string& path, bool mark_cycles);
  Status stop_timeline() { return timeline_.stop(); }
  // "name value" lines.
  std::string stats();
  std::string recorder_dump();
  const Config& config() const { return config_; }
  NameTable& names() { return names_; }

 private:
  // A user thread inside the engine: shutdown waits until all have left before the world goes.
  class Visit;

  Status not_started() const;
  transport::FabricOptions fabric_options() const;
  Status check(Submission& submission) const;
  void name_group(std::span<Submission> submissions);
  void remember_set(SetId id, SetInfo info);
  // Runs `call` under the token, by whoever holds it, and waits for it.
  void call(const std::function<void(EngineToken&)>& call);
  Result<SetId> build_set(SetId id, std::span<const int32_t> ranks, Time deadline);
  void say_goodbye();
  void end_world(bool goodbye);
  std::string timeline_path(const std::string& path) const;
  int64_t spin_us(int32_t local_size) const;

  const Config config_;
  const std::shared_ptr<transport::InprocHub> hub_;
  const Clock& clock_;
  NameTable names_;
  trace::Timeline timeline_;
  HandleTable handles_;
  Intake intake_;

  std::mutex lifecycle_;  // start, shutdown, building sets: one at a time
  std::unique_ptr<transport::Door> door_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Charge> charge_;  // who drives world_; the two live and die together
  std::thread engine_thread_;
  int64_t epoch_ = config_.epoch;  // worlds begun through the store: all ranks count alike
  WorldInfo info_;
  std::atomic<bool> started_{false};
  std::atomic<int> visitors_{0};

  mutable std::mutex sets_mutex_;  // what follows
  std::unordered_map<SetId, SetInfo> set_infos_;
  std::vector<SetId> free_set_ids_;
  SetId next_set_id_ = 1;
  std::unordered_map<uint64_t, NameId> group_names_;
};

}  // namespace halay::engine
