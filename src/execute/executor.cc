#include "execute/executor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "execute/lane.h"

namespace halay::execute {

struct Executor::State {
  transport::Fabric& fabric;
  const ExecutorOptions options;
  LaneShared shared;
  std::vector<std::unique_ptr<Lane>> lanes;
  Status lost;  // not ok: the world is lost, nothing runs any more

  State(transport::Fabric& fabric_in, ExecutorOptions options_in, NameTable& names, trace::Timeline& timeline)
      : fabric(fabric_in), options(std::move(options_in)), shared{fabric_in, options, names, timeline} {}

  Lane* find(uint64_t id) const {
    for (const auto& lane : lanes) {
      if (lane->id() == id) return lane.get();
    }
    return nullptr;
  }
  void check_deadlines(Time now);
  void abandon(const Status& status);
};

void Executor::State::check_deadlines(Time now) {
  for (const auto& lane : lanes) {
    if (now >= lane->deadline()) return abandon(lane->overdue());
  }
}

void Executor::State::abandon(const Status& status) {
  HALAY_ASSERT(!status.ok());
  if (!lost.ok()) return;
  lost = status;
  for (const auto& lane : lanes) {
    for (int32_t rank = 0; rank < fabric.size(); ++rank) {
      transport::Channel* channel = fabric.channel(rank);
      if (channel != nullptr) channel->cancel_lane(lane->id());
    }
    lane->abandon(status);
  }
}

Executor::Executor(transport::Fabric& fabric, ExecutorOptions options, NameTable& names, trace::Timeline& timeline)
    : state_(std::make_unique<State>(fabric, std::move(options), names, timeline)) {}

Executor::~Executor() {
  // Channels outlive this object: none may write into memory that goes away.
  if (!idle()) state_->abandon(Status::aborted("the engine ends"));
}

void Executor::add_lane(LaneSpec spec) {
  HALAY_ASSERT(state_->find(spec.lane) == nullptr);
  HALAY_ASSERT(spec.me >= 0 && static_cast<size_t>(spec.me) < spec.ranks.size());
  state_->lanes.push_back(std::make_unique<Lane>(std::move(spec), state_->shared));
}

void Executor::remove_lane(uint64_t lane) {
  const auto gone = std::ranges::find_if(state_->lanes, [&](const auto& each) { return each->id() == lane; });
  HALAY_ASSERT(gone != state_->lanes.end() && (*gone)->idle());
  state_->lanes.erase(gone);
}

bool Executor::lane_idle(uint64_t lane) const {
  const Lane* found = state_->find(lane);
  return found == nullptr || found->idle();
}

void Executor::enqueue(uint64_t lane, BoundBatch batch, Time /*now*/) {
  if (!state_->lost.ok()) {
    state_->shared.finished.push_back({batch.id, state_->lost});
    return;
  }
  Lane* found = state_->find(lane);
  HALAY_ASSERT(found != nullptr);
  found->enqueue(std::move(batch));
}

bool Executor::progress(Time now) {
  State& state = *state_;
  if (!state.lost.ok()) return false;
  bool moved = false;
  for (const auto& lane : state.lanes) moved |= lane->progress(now);
  if (!state.shared.lost.ok()) {
    state.abandon(state.shared.lost);
    return true;
  }
  // What a lost peer had sent before its end may still finish some Batches; then nothing more will come.
  if (!moved && !state.fabric.status().ok()) {
    state.abandon(state.fabric.status());
    return true;
  }
  state.check_deadlines(now);
  if (now >= state.shared.pool.next_trim()) state.shared.pool.trim(now);
  return moved || !state.lost.ok();
}

void Executor::take_finished(std::vector<Finished>& out) {
  std::vector<Finished>& finished = state_->shared.finished;
  std::move(finished.begin(), finished.end(), std::back_inserter(out));
  finished.clear();
}

Time Executor::next_deadline() const {
  if (!state_->lost.ok()) return Time::never();
  Time next = state_->shared.pool.next_trim();
  for (const auto& lane : state_->lanes) next = std::min(next, lane->deadline());
  return next;
}

bool Executor::idle() const {
  return std::ranges::all_of(state_->lanes, [](const auto& lane) { return lane->idle(); });
}

void Executor::abandon(const Status& status) { state_->abandon(status); }

const Status& Executor::status() const { return state_->lost; }

std::string Executor::describe() const {
  std::string out;
  for (const auto& lane : state_->lanes) {
    const std::string words = lane->describe();
    if (words.empty()) continue;
    if (!out.empty()) out += '\n';
    out += words;
  }
  return out;
}

const ExecutorCounters& Executor::counters() const {
  ExecutorCounters& counters = state_->shared.counters;
  counters.plans_made = state_->shared.plans.made();
  counters.plans_reused = state_->shared.plans.reused();
  counters.scratch_bytes = state_->shared.pool.counters().held_bytes;
  counters.scratch_bytes_peak = state_->shared.pool.counters().held_bytes_peak;
  return counters;
}

}  // namespace halay::execute
