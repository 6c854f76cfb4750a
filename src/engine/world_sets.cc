// The building and ending of process sets: every member greets every other; windows are made on the way.
#include "base/hash.h"
#include "base/text.h"
#include "engine/world.h"

namespace halay::engine {
namespace {

// A hello: one byte, whether this member can use windows for the set.
constexpr std::byte kNoWindows{0}, kWindows{1};

// Frames for sets not begun here are kept up to this, a member that is ahead has no more to say before all have
// greeted.
constexpr size_t kMostEarlyFrames = 4096;

control::Limits limits_of(const Config& config) {
  control::Limits limits;
  limits.fusion_bytes = static_cast<size_t>(config.fusion_threshold);
  limits.coalesce_us = static_cast<int64_t>(config.cycle_time_ms * 1000);
  limits.cache_capacity = static_cast<size_t>(config.cache_capacity);
  limits.stall_check = !config.stall_check_disable;
  limits.stall_warning_ms = static_cast<int64_t>(config.stall_warning_s * 1000);
  limits.op_deadline_ms = config.op_deadline_ms();
  return limits;
}

}  // namespace

ProcessSet& World::begin_set(EngineToken&, SetId id, std::span<const int32_t> ranks) {
  auto owned = std::make_unique<ProcessSet>();
  ProcessSet& set = *owned;
  set.id = id;
  set.ranks.assign(ranks.begin(), ranks.end());
  set.me = set.member_of(fabric_->rank());
  HALAY_ASSERT(set.me >= 0);
  set.label = text("process set ", id, " (ranks ", set.ranks, ")");
  // Members begin sets of the same ranks in the same order, so the how-manieth it is makes the lane unique and agreed.
  const uint64_t of_ranks = hash_bytes(std::as_bytes(ranks));
  set.lane = hash_bytes(std::as_bytes(ranks), ++lanes_of_ranks_[of_ranks]);
  set.control = std::make_unique<control::SetControl>(control::SetSpec{set.label, set.ranks, set.me},
                                                      limits_of(parts_.config), parts_.names);
  set.heard.assign(set.ranks.size(), false);
  set.heard[static_cast<size_t>(set.me)] = true;
  set.windows = set.ranks.size() > 1 && fabric_->windows_possible(ranks) && fabric_->open_windows(set.lane, ranks).ok();
  lanes_[set.lane] = &set;
  sets_[id] = std::move(owned);
  const std::byte hello = set.windows ? kWindows : kNoWindows;
  for (const int32_t rank : set.ranks) {
    if (rank != fabric_->rank()) {
      fabric_->channel(rank)->send_frame(transport::FrameKind::set_hello, set.lane, {&hello, 1});
    }
  }
  if (const auto early = early_.find(set.lane); early != early_.end()) {
    for (const EarlyFrame& frame : early->second) on_frame(frame.rank, frame.kind, set.lane, frame.payload);
    early_.erase(early);
  }
  return set;
}

void World::on_hello(int32_t rank, uint64_t lane, std::span<const std::byte> payload) {
  ProcessSet* set = set_of_lane(lane);
  if (set == nullptr) {
    std::vector<EarlyFrame>& frames = early_[lane];
    if (frames.size() < kMostEarlyFrames)
      frames.push_back({rank, transport::FrameKind::set_hello, {payload.begin(), payload.end()}});
    return;
  }
  const int member = set->member_of(rank);
  if (member < 0 || payload.size() != 1) {
    pending_loss_ =
        Status::internal(text("rank ", rank, " sent a greeting for ", set->label, " that cannot be understood"));
    return;
  }
  set->heard[static_cast<size_t>(member)] = true;
  set->windows &= payload[0] == kWindows;
}

void World::try_activate(ProcessSet& set) {
  for (const bool heard : set.heard) {
    if (!heard) return;
  }
  if (set.windows && !fabric_->windows_ready(set.lane)) return;
  set.active = true;
  ++news_;
  execute::LaneSpec spec;
  spec.lane = set.lane;
  spec.ranks = set.ranks;
  spec.me = set.me;
  spec.windows = set.windows;
  spec.label = set.label;
  executor_->add_lane(std::move(spec));
  parts_.intake.open_set(set.id);
  for (auto& [member, bytes] : set.early) on_control(set.ranks[static_cast<size_t>(member)], set.lane, bytes);
  set.early.clear();
}

std::vector<int32_t> World::set_missing(EngineToken&, SetId id) const {
  std::vector<int32_t> missing;
  const auto found = sets_.find(id);
  if (found == sets_.end()) return missing;
  for (size_t member = 0; member < found->second->ranks.size(); ++member) {
    if (!found->second->heard[member]) missing.push_back(found->second->ranks[member]);
  }
  return missing;
}

void World::end_set(EngineToken&, SetId id) {
  const auto found = sets_.find(id);
  if (found == sets_.end()) return;
  ProcessSet& set = *found->second;
  parts_.intake.close_set(id);
  if (set.active) executor_->remove_lane(set.lane);
  if (status_.ok()) fabric_->close_windows(set.lane);
  lanes_.erase(set.lane);
  sets_.erase(found);
}

const ProcessSet* World::find_set(EngineToken&, SetId id) const {
  const auto found = sets_.find(id);
  return found == sets_.end() ? nullptr : found->second.get();
}

ProcessSet* World::set_of_lane(uint64_t lane) {
  const auto found = lanes_.find(lane);
  return found == lanes_.end() ? nullptr : found->second;
}

}  // namespace halay::engine
