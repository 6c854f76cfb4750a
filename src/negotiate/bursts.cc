#include "negotiate/bursts.h"

namespace halay::negotiate {
namespace {

// One late rank cuts a burst in two closes; so two such steps in a row are forgiven, the third is a new habit.
constexpr uint32_t kMostMisses = 5;

}  // namespace

void Bursts::ready(BurstPlace place) {
  if (place.burst == 0) {
    ++unknown_;
    return;
  }
  Burst& burst = bursts_[place.burst];
  if (++burst.ready == 1) ++incomplete_;
  if (burst.ready == burst.size) --incomplete_;
}

void Bursts::close(std::span<BurstPlace* const> places, bool join_previous) {
  for (const BurstPlace* place : places) {
    Burst& burst = bursts_[place->burst];
    if (place->burst == 0 || burst.judged) continue;
    burst.judged = true;
    burst.misses = burst.ready == burst.size ? 0 : burst.misses + 1;
    burst.stays = burst.misses < kMostMisses;
  }
  for (const BurstPlace* place : places) {
    bursts_[place->burst].ready = 0;
    bursts_[place->burst].judged = false;
  }
  incomplete_ = unknown_ = 0;

  const uint32_t joined = join_previous ? previous_ : 0;
  uint32_t fresh = joined;
  bool one = !places.empty();
  for (BurstPlace* place : places) {
    if (joined != 0 || !bursts_[place->burst].stays) {
      if (fresh == 0) fresh = add();
      move(*place, fresh);
    }
    one = one && place->burst == places[0]->burst;
  }
  for (const BurstPlace* place : places) bursts_[place->burst].stays = false;
  previous_ = one ? places[0]->burst : 0;
}

void Bursts::leave(BurstPlace& place) { move(place, 0); }

uint32_t Bursts::add() {
  if (free_.empty()) {
    bursts_.emplace_back();
    return static_cast<uint32_t>(bursts_.size() - 1);
  }
  const uint32_t burst = free_.back();
  free_.pop_back();
  bursts_[burst] = {};
  return burst;
}

void Bursts::move(BurstPlace& place, uint32_t to) {
  const uint32_t from = place.burst;
  if (from == to) return;
  place.burst = to;
  if (to != 0) ++bursts_[to].size;
  if (from == 0) return;
  Burst& left = bursts_[from];
  // One of those that are ready may now be complete without it.
  if (--left.size > 0) {
    if (left.ready > 0 && left.ready == left.size) --incomplete_;
    return;
  }
  if (previous_ == from) previous_ = 0;
  free_.push_back(from);
}

}  // namespace halay::negotiate
