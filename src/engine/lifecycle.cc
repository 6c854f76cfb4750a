// Start, process sets and shutdown of an Engine: what happens rarely, one at a time.
#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "engine/engine.h"

namespace halay::engine {
namespace {

// So long a leaving rank waits for the others to have heard it; they hear it as soon as somebody drives there.
constexpr int64_t kGoodbyeMs = 2000;

int64_t ms_of(double seconds) { return static_cast<int64_t>(seconds * 1000); }

// Ranks that share this rank's machine, and where this rank stands among them.
WorldInfo info_of(const transport::Fabric& fabric) {
  WorldInfo info;
  info.rank = fabric.rank();
  info.size = fabric.size();
  std::vector<int32_t> ranks_on;  // by machine
  std::vector<int32_t> local(static_cast<size_t>(info.size));
  for (int32_t rank = 0; rank < info.size; ++rank) {
    const auto machine = static_cast<size_t>(fabric.machine_of(rank));
    if (machine >= ranks_on.size()) ranks_on.resize(machine + 1);
    local[static_cast<size_t>(rank)] = ranks_on[machine]++;
  }
  const auto here = static_cast<size_t>(fabric.machine_of(info.rank));
  info.local_rank = local[static_cast<size_t>(info.rank)];
  info.local_size = ranks_on[here];
  info.cross_rank = info.cross_size = 0;
  for (size_t machine = 0; machine < ranks_on.size(); ++machine) {
    if (ranks_on[machine] <= info.local_rank) continue;
    if (machine < here) ++info.cross_rank;
    ++info.cross_size;
  }
  info.homogeneous = std::ranges::adjacent_find(ranks_on, std::not_equal_to<>()) == ranks_on.end();
  return info;
}

}  // namespace

transport::FabricOptions Engine::fabric_options() const {
  transport::FabricOptions options;
  options.transport = hub_ ? "inproc" : config_.transport;
  options.hub = hub_;
  options.interfaces = config_.interfaces;
  options.key = config_.job_key;
  options.build_id = std::string(version());
  options.algorithms = text(config_.algorithms, config_.reproducible ? " reproducible" : "");
  options.connect_timeout_ms = ms_of(config_.start_timeout_s);
  options.heartbeat_ms = ms_of(config_.heartbeat_s);
  options.window_bytes = static_cast<size_t>(config_.window_bytes);
  return options;
}

Result<std::span<const std::byte>> Engine::address() {
  const std::lock_guard lock(lifecycle_);
  if (started_.load()) return Status::invalid_argument("the world has been built already; shut it down first");
  if (!door_) {
    HALAY_TRY(door_, transport::open_door(fabric_options()));
  }
  return door_->address();
}

int64_t Engine::spin_us(int32_t local_size) const {
  if (config_.spin_us >= 0) return config_.spin_us;
  return local_size > static_cast<int32_t>(std::thread::hardware_concurrency()) ? 50 : 200;
}

Status Engine::start(int32_t rank, std::span<const std::vector<std::byte>> addresses) {
  const std::lock_guard lock(lifecycle_);
  if (started_.load()) return Status::invalid_argument("the world has been built already; shut it down first");
  const auto size = static_cast<int32_t>(addresses.size());
  if (size < 1 || rank < 0 || rank >= size) {
    return Status::invalid_argument(text("rank ", rank, " of ", size, ": a rank lies from 0 to size - 1"));
  }
  if (!door_) return Status::invalid_argument("this rank's own address was never asked for (halay_engine_address)");
  set_log(log_level_from(config_.log_level), config_.log_hide_time, rank);
  const Time deadline = clock_.now().plus_ms(ms_of(config_.start_timeout_s));
  HALAY_TRY(auto fabric, transport::connect(std::move(door_), rank, addresses, fabric_options()));
  intake_.reset();
  info_ = info_of(*fabric);
  world_ =
      std::make_unique<World>(WorldParts{config_, clock_, names_, handles_, intake_, timeline_}, std::move(fabric));
  ChargeOptions options;
  options.spin_us = spin_us(info_.local_size);
  // With more ranks than cores a pause only keeps the peer from running.
  options.pause_us =
      info_.local_size > static_cast<int32_t>(std::thread::hardware_concurrency()) ? 0 : options.spin_us / 10;
  charge_ = std::make_unique<Charge>(*world_, intake_, clock_, options);
  engine_thread_ = std::thread([this] { charge_->run(); });
  started_.store(true);
  std::vector<int32_t> everybody(static_cast<size_t>(size));
  for (int32_t r = 0; r < size; ++r) everybody[static_cast<size_t>(r)] = r;
  // The timeline first: nobody's world stands before rank 0 has greeted, so all ranks fail if it cannot be written.
  Status built;
  if (!config_.timeline.empty() && config_.timeline != "DYNAMIC" && config_.timeline != "dynamic") {
    built = start_timeline(config_.timeline, config_.timeline_mark_cycles);
    if (!built.ok()) (void)abort(built.text());
  }
  if (built.ok()) built = build_set(0, everybody, deadline).status();
  if (!built.ok()) end_world(true);
  return built;
}

Result<SetId> Engine::build_set(SetId id, std::span<const int32_t> ranks, Time deadline) {
  ProcessSet* set = nullptr;
  Status lost;
  call([&](EngineToken& token) {
    if (world_->status().ok()) {
      set = &world_->begin_set(token, id, ranks);
    } else {
      lost = world_->status();
    }
  });
  if (set == nullptr) return lost;
  charge_->drive_until([&] { return set->active.load() || world_->lost(); }, deadline);
  std::vector<int32_t> missing;
  call([&](EngineToken& token) {
    lost = world_->status();
    if (set->active.load() && lost.ok()) return;
    missing = world_->set_missing(token, id);
    if (id != 0) world_->end_set(token, id);
  });
  if (!lost.ok()) return lost;
  if (!missing.empty()) {
    return Status::timeout(text("process set of ranks ", std::vector<int32_t>(ranks.begin(), ranks.end()), ": rank(s) ",
                                missing, " did not call within ", config_.start_timeout_s, " s (HALAY_START_TIMEOUT)"));
  }
  SetInfo info;
  info.ranks.assign(ranks.begin(), ranks.end());
  info.member = static_cast<int32_t>(std::ranges::find(info.ranks, info_.rank) - info.ranks.begin());
  remember_set(id, std::move(info));
  return id;
}

void Engine::remember_set(SetId id, SetInfo info) {
  const std::lock_guard lock(sets_mutex_);
  set_infos_[id] = std::move(info);
}

Result<SetId> Engine::create_set(std::span<const int32_t> ranks) {
  const std::lock_guard lock(lifecycle_);
  if (!started_.load()) return not_started();
  std::vector<int32_t> sorted(ranks.begin(), ranks.end());
  std::ranges::sort(sorted);
  if (sorted.empty() || sorted.front() < 0 || sorted.back() >= info_.size ||
      std::ranges::adjacent_find(sorted) != sorted.end()) {
    return Status::invalid_argument(
        text("process set of ranks ", sorted, ": must be different ranks from 0 to ", info_.size - 1));
  }
  if (!std::ranges::binary_search(sorted, info_.rank)) {
    return Status::not_a_member(text("rank ", info_.rank, " is not among the ranks ", sorted, " of the process set"));
  }
  SetId id = 0;
  {
    const std::lock_guard sets(sets_mutex_);
    if (free_set_ids_.empty()) {
      id = next_set_id_++;
    } else {
      id = free_set_ids_.front();
      free_set_ids_.erase(free_set_ids_.begin());
    }
  }
  Result<SetId> built = build_set(id, sorted, clock_.now().plus_ms(ms_of(config_.start_timeout_s)));
  if (!built.ok()) {
    const std::lock_guard sets(sets_mutex_);
    free_set_ids_.push_back(id);
  }
  return built;
}

Status Engine::destroy_set(SetId set) {
  const std::lock_guard lock(lifecycle_);
  if (!started_.load()) return not_started();
  if (set == 0) return Status::invalid_argument("the world's own process set cannot be removed");
  {
    const std::lock_guard sets(sets_mutex_);
    if (!set_infos_.contains(set)) return Status::not_a_member(text("process set ", set, " is not known on this rank"));
    // Under the same lock as check(): nobody submits to it from here on.
    if (const size_t count = intake_.in_flight(set); count > 0) {
      return Status::invalid_argument(
          text("process set ", set, " has ", count, " operations in flight; wait for them first"));
    }
    set_infos_.erase(set);
    free_set_ids_.push_back(set);
  }
  call([&](EngineToken& token) { world_->end_set(token, set); });
  return {};
}

Result<Engine::SetInfo> Engine::query_set(SetId set) const {
  if (!started_.load()) return not_started();
  const std::lock_guard lock(sets_mutex_);
  const auto found = set_infos_.find(set);
  if (found == set_infos_.end()) return Status::not_a_member(text("process set ", set, " is not known on this rank"));
  return found->second;
}

Status Engine::shutdown() {
  const std::lock_guard lock(lifecycle_);
  if (!started_.load()) return {};
  end_world(true);
  return {};
}

void Engine::vanish() {
  const std::lock_guard lock(lifecycle_);
  if (started_.load()) end_world(false);
}

void Engine::say_goodbye() {
  call([&](EngineToken& token) { world_->say_goodbye(token, handles_.pending().empty()); });
  charge_->drive_until([&] { return world_->goodbye_heard() || world_->lost(); }, clock_.now().plus_ms(kGoodbyeMs));
}

void Engine::end_world(bool goodbye) {
  const Status why = Status::aborted("halay was shut down on this rank before the operation completed");
  intake_.refuse_all(not_started());
  if (goodbye) say_goodbye();
  call([&](EngineToken& token) { world_->close(token, why); });
  started_.store(false);
  charge_->stop();
  engine_thread_.join();
  // Visitors see that their operations ended, or that there is no world.
  while (visitors_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  charge_.reset();
  world_.reset();
  (void)timeline_.stop();
  const std::lock_guard sets(sets_mutex_);
  set_infos_.clear();
  free_set_ids_.clear();
  next_set_id_ = 1;
}

}  // namespace halay::engine
