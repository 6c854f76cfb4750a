#include "negotiate/asker.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "negotiate/validate.h"

namespace halay::negotiate {
namespace {

// The decider keeps what it has evicted until all members have applied the list that says so. A member that has nothing
// else to tell reports after so many evictions.
constexpr size_t kUntoldEvictions = 64;

}  // namespace

Asker::Asker(int me, int set_size, NameTable& names) : me_(me), set_size_(set_size), names_(names) {
  join_decision_.kind = OpKind::join;
}

void Asker::submit(Ticket ticket, const Request& request, bool urgent, Time now) {
  if (joined_) {
    held_.push_back({ticket, request, urgent});
  } else {
    ask(ticket, request, urgent, now);
  }
}

void Asker::join(Ticket ticket, Time now) {
  HALAY_ASSERT(!joined_);
  joined_ = true;
  join_ticket_ = ticket;
  last_list_at_ = now;
  news_.joined = true;
}

void Asker::urge() {
  if (undecided_ > 0 && unurged_) news_.urgent = true;
}

void Asker::end(const Status& why) {
  if (ended_.ok()) ended_ = why;
}

// What is undecided after the decider's last list: a list of this member alone, without a number.
const DecisionList* Asker::failed_list() {
  if (undecided() == 0) return nullptr;
  list_ = {};
  failures_.clear();
  std::vector<Ticket> tickets;
  const auto add = [&](NameId name, OpKind kind, Ticket ticket) {
    Decision& failure = failures_.emplace_back();
    failure.name = name;
    failure.kind = kind;
    failure.status =
        Status(ended_.code(),
               text(kind == OpKind::join ? std::string_view("join") : names_.text(name), " needs it: ", ended_.text()),
               ended_.culprit());
    tickets.push_back(ticket);
  };
  while (Slot* slot = pending_.front()) {
    add(slot->name, slot->kind, answer(*slot));
    if (!slot->known) slots_.erase(static_cast<uint32_t>(slot->name));
  }
  for (const Held& held : std::exchange(held_, {})) add(held.request.name, held.request.kind, held.ticket);
  if (join_ticket_ != Ticket::none) add({}, OpKind::join, end_join());
  news_.requests.clear();
  news_.repeats.clear();
  for (size_t i = 0; i < failures_.size(); ++i) list_.decided.push_back({&failures_[i], tickets[i]});
  return &list_;
}

bool Asker::has_news() const {
  if (!ended_.ok()) return false;
  return news_.urgent || news_.joined || !news_.repeats.empty() || !news_.requests.empty() ||
         evictions_untold_ >= kUntoldEvictions;
}

Announcement& Asker::news() {
  news_.applied = applied_;
  return news_;
}

void Asker::told() {
  if (news_.urgent) unurged_ = false;
  news_.urgent = news_.joined = false;
  news_.repeats.clear();
  news_.requests.clear();
  evictions_untold_ = 0;
}

void Asker::ask(Ticket ticket, const Request& request, bool urgent, Time now) {
  Slot& slot = slot_of(request.name);
  HALAY_ASSERT(!slot.pending);
  slot.pending = true;
  slot.ticket = ticket;
  slot.kind = request.kind;
  slot.since = now;
  slot.rows = request.shape.dim_count() > 0 ? request.shape[0] : 0;
  pending_.push_back(slot);
  ++undecided_;
  unurged_ = true;
  if (urgent) news_.urgent = true;

  if (slot.known && answers(slot.known->decision, request, me_, set_size_)) {
    ++cache_hits_;
    news_.repeats.push_back({slot.known->decision.cache_id, slot.known->asks++});
    return;
  }
  ++cache_misses_;
  if (slot.known) ++slot.known->asks;
  normalize(news_.requests.emplace_back(request), set_size_);
}

Asker::Slot& Asker::slot_of(NameId name) {
  Slot& slot = slots_[static_cast<uint32_t>(name)];
  slot.name = name;
  return slot;
}

Status Asker::receive(std::unique_ptr<ListMessage> list, Time now) {
  if (list->number != received_ + 1) {
    return Status::internal(text("decision list ", list->number, " came after list ", received_));
  }
  received_ = list->number;
  last_list_at_ = now;
  queue_.push_back(std::move(list));
  return {};
}

const DecisionList* Asker::next_list() {
  evicted_.clear();
  if (current_) spare_.push_back(std::move(current_));
  if (queue_head_ == queue_.size()) {
    queue_.clear();
    queue_head_ = 0;
    return ended_.ok() ? nullptr : failed_list();
  }
  if (!status_.ok()) return nullptr;
  current_ = std::move(queue_[queue_head_++]);
  applied_ = current_->number;
  list_.number = current_->number;
  list_.fusion_bytes = current_->fusion_bytes;
  list_.joined = current_->joined;
  list_.decided.clear();
  for (const ListItem& item : current_->items) {
    apply(item);
    if (!status_.ok()) return nullptr;
  }
  return &list_;
}

std::unique_ptr<ListMessage> Asker::take_spare() {
  if (spare_.empty()) return nullptr;
  std::unique_ptr<ListMessage> list = std::move(spare_.back());
  spare_.pop_back();
  return list;
}

void Asker::apply(const ListItem& item) {
  switch (item.kind) {
    case ListItemKind::repeat:
      return apply_repeat(item.value);
    case ListItemKind::fresh:
      return apply_fresh(current_->fresh[item.value]);
    case ListItemKind::failed:
      return apply_failed(current_->fresh[item.value]);
    case ListItemKind::evict:
      return apply_evict(item.value);
    case ListItemKind::join:
      return apply_join(item.value);
  }
}

void Asker::apply_repeat(uint32_t cache_id) {
  const auto found = by_cache_id_.find(cache_id);
  if (found == by_cache_id_.end()) return broken(text("the unknown cache number ", cache_id));
  Slot& slot = *found->second;
  list_.decided.push_back({&slot.known->decision, answer(slot)});
}

void Asker::apply_fresh(FreshDecision& fresh) {
  Decision& decision = fresh.decision;
  Slot& slot = slot_of(decision.name);
  if (slot.pending && traits_of(decision.kind).shapes == ShapeRule::rows) decision.shape.set_dim(0, slot.rows);
  const Decision* shown = &decision;
  if (decision.cache_id != 0) {
    Slot*& numbered = by_cache_id_[decision.cache_id];
    if ((numbered != nullptr && numbered != &slot) || (numbered == nullptr && slot.known != nullptr)) {
      return broken(
          text("cache number ", decision.cache_id, " for ", names_.text(decision.name), ", against an earlier list"));
    }
    numbered = &slot;
    if (!slot.known) slot.known = std::make_unique<Known>();
    slot.known->decision = decision;
    shown = &slot.known->decision;
  }
  list_.decided.push_back({shown, answer(slot)});
  if (!slot.known) slots_.erase(static_cast<uint32_t>(decision.name));
}

void Asker::apply_failed(const FreshDecision& fresh) {
  Ticket ticket = Ticket::none;
  const bool mine = std::ranges::binary_search(fresh.asked, me_);
  if (mine && fresh.decision.kind == OpKind::join) {
    if (join_ticket_ == Ticket::none) return broken("a failed join, while this rank has not joined");
    ticket = end_join();
  } else if (mine) {
    const auto found = slots_.find(static_cast<uint32_t>(fresh.decision.name));
    if (found == slots_.end() || !found->second.pending) {
      return broken(text("a failure of ", names_.text(fresh.decision.name), ", for which this rank did not ask"));
    }
    ticket = answer(found->second);
    if (!found->second.known) slots_.erase(found);
  }
  list_.decided.push_back({&fresh.decision, ticket});
}

void Asker::apply_evict(uint32_t cache_id) {
  const auto found = by_cache_id_.find(cache_id);
  if (found == by_cache_id_.end()) return broken(text("an eviction of the unknown cache number ", cache_id));
  Slot& slot = *found->second;
  by_cache_id_.erase(found);
  evicted_.push_back(std::move(slot.known));
  if (!slot.pending) slots_.erase(static_cast<uint32_t>(slot.name));
  ++evictions_untold_;
}

void Asker::apply_join(uint32_t last_joined) {
  if (join_ticket_ == Ticket::none) return broken("a join of all, while this rank has not joined");
  join_decision_.last_joined = static_cast<int32_t>(last_joined);
  list_.decided.push_back({&join_decision_, end_join()});
}

// The ticket of a slot that is decided; none where this rank is skipped.
Ticket Asker::answer(Slot& slot) {
  if (!slot.pending) {
    if (!std::ranges::binary_search(current_->joined, me_)) {
      broken(text(names_.text(slot.name), ", for which this rank did not ask"));
    }
    return Ticket::none;
  }
  slot.pending = false;
  pending_.remove(slot);
  --undecided_;
  return slot.ticket;
}

Ticket Asker::end_join() {
  const Ticket ticket = std::exchange(join_ticket_, Ticket::none);
  joined_ = false;
  const std::vector<Held> held = std::exchange(held_, {});
  for (const Held& one : held) ask(one.ticket, one.request, one.urgent, last_list_at_);
  return ticket;
}

Time Asker::waiting_since() const {
  const Slot* oldest = pending_.front();
  const Time joined_since = join_ticket_ == Ticket::none ? Time::never() : last_list_at_;
  return oldest ? std::min(oldest->since, joined_since) : joined_since;
}

std::string Asker::waiting_for() const {
  const Slot* oldest = pending_.front();
  return oldest ? std::string(names_.text(oldest->name)) : std::string("join");
}

void Asker::broken(std::string_view what) {
  if (status_.ok()) status_ = Status::internal(text("decision list ", applied_, " has ", what));
}

}  // namespace halay::negotiate
