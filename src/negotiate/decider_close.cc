// When a list is closed, and what it says.
#include <algorithm>

#include "base/text.h"
#include "negotiate/decider.h"

namespace halay::negotiate {

void Decider::step(Time now) {
  check_deadlines(now);
  check_join(now);
  if (joined_.count() == set_size_) end_join(now);
  fail_for_gone(now);
  if (due(now)) close(now);
  check_stalls(now);
}

// Waiting for company is over when all of the expected is there, when there is enough, when a thread waits and no
// company is known, and at the latest after coalesce_us.
bool Decider::due(Time now) const {
  if (ready_.empty()) return false;
  if (close_now_ || bursts_.settled() || ready_bytes_ >= options_.fusion_bytes) return true;
  if (ready_urgent_ && bursts_.only_unknown()) return true;
  return now >= first_ready_.plus_us(options_.coalesce_us);
}

void Decider::close(Time now) {
  if (ready_.empty()) return;
  ++close_count_;
  // What was asked for before the last list could be applied does not depend on it: next time they go together. What
  // was asked for after it perhaps does, and would wait in vain.
  const bool soon = now <= last_close_at_.plus_us(options_.coalesce_us / 2);
  const bool join_previous = last_close_can_grow_ && soon && std::ranges::any_of(ready_, [this](const Entry* entry) {
                               return entry->earliest_applied < number_;
                             });
  last_close_can_grow_ = !ready_urgent_ && !close_now_ && ready_bytes_ < options_.fusion_bytes;

  decided_ = ready_;
  while (!ready_.empty()) close_one(ready_, now);
  places_.clear();
  for (Entry* entry : decided_) {
    if (entry->cache_id != 0) places_.push_back(&entry->place);
  }
  bursts_.close(places_, join_previous);
  for (Entry* entry : decided_) {
    if (entry->cache_id == 0) entries_.erase(static_cast<uint32_t>(entry->name));
  }
  ready_bytes_ = 0;
  ready_urgent_ = close_now_ = false;
}

// One list skips the same members for all that it decides; a member that has joined but had asked for something takes
// part in that.
void Decider::close_one(std::vector<Entry*>& left, Time now) {
  ListMessage& list = new_list(now);
  list.joined = left[0]->skipped;
  size_t kept = 0;
  for (Entry* entry : left) {
    if (entry->skipped == list.joined) {
      emit(*entry, list);
      end_round(*entry);
    } else {
      left[kept++] = entry;
    }
  }
  left.resize(kept);
}

ListMessage& Decider::new_list(Time now) {
  std::unique_ptr<ListMessage> list;
  if (spare_.empty()) {
    list = std::make_unique<ListMessage>();
  } else {
    list = std::move(spare_.back());
    spare_.pop_back();
    list->clear();
  }
  list->number = ++number_;
  list->fusion_bytes = options_.fusion_bytes;
  last_close_at_ = now;
  closed_.push_back(std::move(list));
  return *closed_.back();
}

void Decider::emit(Entry& entry, ListMessage& list) {
  entry.closed_in = close_count_;
  if (by_use_.contains(entry)) by_use_.move_to_back(entry);
  if (!entry.fresh) {
    list.items.push_back({ListItemKind::repeat, entry.cache_id});
    return;
  }
  Decision& decision = entry.fresh->decision;
  const bool failed = !decision.status.ok();
  if (failed) entry.fresh->asked = entry.asked.members();
  if (!failed && entry.cache_id == 0) assign_cache_id(entry, list);
  if (!failed && entry.cache_id != 0) {
    decision.cache_id = entry.cache_id;
    entry.agreed = decision;
    entry.agreed_bytes = entry.bytes;
  }
  list.items.push_back({failed ? ListItemKind::failed : ListItemKind::fresh, static_cast<uint32_t>(list.fresh.size())});
  list.fresh.push_back(std::move(*entry.fresh));
}

void Decider::assign_cache_id(Entry& entry, ListMessage& list) {
  if (!traits_of(entry.fresh->decision.kind).cached || options_.cache_capacity == 0) return;
  // Numbers are never used again, so that none can mean two things; after four billion, new tensors travel in full.
  if (last_cache_id_ == UINT32_MAX) return;
  if (by_cache_id_.size() >= options_.cache_capacity) {
    Entry* victim = find_victim();
    if (!victim) return;
    list.items.push_back({ListItemKind::evict, victim->cache_id});
    retired_.emplace(victim->cache_id, Retired{std::move(victim->agreed), std::move(victim->asks)});
    retired_order_.emplace_back(list.number, victim->cache_id);
    by_cache_id_.erase(victim->cache_id);
    by_use_.remove(*victim);
    bursts_.leave(victim->place);
    entries_.erase(static_cast<uint32_t>(victim->name));
  }
  entry.cache_id = ++last_cache_id_;
  entry.asks.assign(static_cast<size_t>(set_size_), 0);
  by_cache_id_.emplace(entry.cache_id, &entry);
  by_use_.push_back(entry);
}

// Not what is being asked for, nor what this close decides.
Entry* Decider::find_victim() {
  for (Entry* entry = by_use_.front(); entry; entry = by_use_.after(*entry)) {
    if (!entry->open && entry->closed_in != close_count_) return entry;
  }
  return nullptr;
}

void Decider::end_round(Entry& entry) {
  open_.remove(entry);
  entry.open = entry.complete = entry.ready = entry.urgent = false;
  entry.asked.clear();
  entry.full.clear();
  entry.skipped.clear();
  entry.fresh.reset();
  entry.bytes = 0;
}

std::unique_ptr<ListMessage> Decider::take_list() {
  if (closed_head_ == closed_.size()) {
    closed_.clear();
    closed_head_ = 0;
    return nullptr;
  }
  return std::move(closed_[closed_head_++]);
}

// All have joined: what is asked for is decided first, then the join ends for everybody.
void Decider::end_join(Time now) {
  for (Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (entry->ready) continue;
    fail(*entry,
         Status::mismatch(text(names_.text(entry->name), ": all ranks have joined, but its group is not complete")),
         now);
  }
  close(now);
  ListMessage& list = new_list(now);
  list.items.push_back({ListItemKind::join, static_cast<uint32_t>(last_joined_)});
  clear_joined();
}

void Decider::clear_joined() {
  joined_.clear();
  // What was complete without those that had joined, and waits for its group, is not any more.
  for (Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (!entry->complete || entry->ready || is_complete(*entry)) continue;
    entry->complete = false;
    entry->fresh.reset();
    entry->skipped.clear();
    if (entry->group) --entry->group->complete_count;
  }
}

}  // namespace halay::negotiate
