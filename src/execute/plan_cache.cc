#include "execute/plan_cache.h"

#include <utility>

namespace halay::execute {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

uint64_t hash_of(const collective::Problem& problem, uint64_t surroundings_id) {
  uint64_t hash = mix(0, surroundings_id);
  hash = mix(hash, static_cast<uint64_t>(problem.kind) << 16 | static_cast<uint64_t>(problem.dtype) << 8 |
                       static_cast<uint64_t>(problem.reduce_op));
  hash = mix(hash, static_cast<uint64_t>(problem.member_count) << 32 | static_cast<uint32_t>(problem.me));
  hash = mix(hash, static_cast<uint64_t>(problem.root));
  hash = mix(hash, problem.count_elems);
  for (const size_t count : problem.counts) hash = mix(hash, count);
  return hash;
}

bool same(const collective::Problem& a, const collective::Problem& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.reduce_op == b.reduce_op && a.member_count == b.member_count &&
         a.me == b.me && a.root == b.root && a.count_elems == b.count_elems && a.counts == b.counts;
}

bool is_user_memory(const Schedule& schedule, const Region& region) {
  return region.buffer == Buffer::input || region.buffer == Buffer::output ||
         (region.buffer == Buffer::acc && schedule.acc_is_output);
}

bool posts_user_memory(const Schedule& schedule) {
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::post_send && is_user_memory(schedule, step.src)) return true;
    if (step.kind == StepKind::post_recv && is_user_memory(schedule, step.dst)) return true;
  }
  return false;
}

}  // namespace

Result<std::shared_ptr<const Plan>> PlanCache::get(const collective::Problem& problem,
                                                   const collective::Surroundings& surroundings,
                                                   uint64_t surroundings_id) {
  const uint64_t hash = hash_of(problem, surroundings_id);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Position position = it->second;
    if (position->surroundings_id != surroundings_id || !same(position->problem, problem)) continue;
    entries_.splice(entries_.begin(), entries_, position);
    ++reused_;
    return position->plan;
  }
  HALAY_TRY(Schedule schedule, collective::plan(problem, surroundings));
  ++made_;
  auto plan = std::make_shared<Plan>();
  plan->schedule = std::move(schedule);
  plan->posts_user_memory = posts_user_memory(plan->schedule);
  while (!entries_.empty() && entries_.size() >= capacity_) forget_oldest();
  entries_.push_front({problem, surroundings_id, hash, plan});
  by_hash_.emplace(hash, entries_.begin());
  return std::shared_ptr<const Plan>(plan);
}

void PlanCache::forget_oldest() {
  const Position oldest = std::prev(entries_.end());
  const auto [first, last] = by_hash_.equal_range(oldest->hash);
  for (auto it = first; it != last; ++it) {
    if (it->second == oldest) {
      by_hash_.erase(it);
      break;
    }
  }
  entries_.erase(oldest);
}

}  // namespace halay::execute
