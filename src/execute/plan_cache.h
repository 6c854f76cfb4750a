// PlanCache: the Schedules made lately, by what they depend on. A repeated Batch costs a look-up.
// Thread: one at a time.   Owns: the plans; a running one is kept alive by its user.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/status.h"
#include "collective/plan.h"
#include "types/batch.h"
#include "types/schedule.h"

namespace halay::execute {

struct Plan {
  Schedule schedule;
  // Something is sent from, or received into, input or output: a fused Batch must be packed into one piece first.
  bool posts_user_memory = false;
};

class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}

  // `surroundings_id` stands for the Surroundings: equal numbers, equal content.
  Result<std::shared_ptr<const Plan>> get(const collective::Problem& problem,
                                          const collective::Surroundings& surroundings, uint64_t surroundings_id);

  size_t size() const { return entries_.size(); }
  uint64_t made() const { return made_; }
  uint64_t reused() const { return reused_; }

 private:
  struct Entry {
    collective::Problem problem;
    uint64_t surroundings_id;
    uint64_t hash;
    std::shared_ptr<const Plan> plan;
  };
  using Position = std::list<Entry>::iterator;

  void forget_oldest();

  size_t capacity_;
  std::list<Entry> entries_;  // newest use first
  std::unordered_multimap<uint64_t, Position> by_hash_;
  uint64_t made_ = 0, reused_ = 0;
};

}  // namespace halay::execute
