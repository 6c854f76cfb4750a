#include "negotiate/decider.h"

#include <algorithm>

#include "base/text.h"
#include "negotiate/validate.h"

// Asking. What is closed, and when, is in decider_close.cc; stalls and deadlines are in decider_stall.cc.
namespace halay::negotiate {

Decider::Decider(DeciderOptions options, NameTable& names)
    : options_(std::move(options)),
      set_size_(static_cast<int>(options_.ranks.size())),
      names_(names),
      peers_(options_.ranks.size()),
      gone_(set_size_),
      joined_(set_size_) {}

Decider::~Decider() = default;

Status Decider::hear(int member, const Announcement& news, Time now) {
  Peer& peer = peers_[static_cast<size_t>(member)];
  if (news.applied < peer.applied || news.applied > number_) {
    return Status::internal(text("rank ", options_.ranks[static_cast<size_t>(member)], " has applied list ",
                                 news.applied, " after ", peer.applied, " of ", number_));
  }
  peer.applied = news.applied;
  for (const Repeat& repeat : news.repeats) HALAY_RETURN_IF_ERROR(hear_repeat(member, repeat, now));
  for (const Request& request : news.requests) HALAY_RETURN_IF_ERROR(hear_request(member, request, now));
  if (news.joined) HALAY_RETURN_IF_ERROR(hear_join(member, now));
  if (news.urgent) hear_urgent(member);
  // A group comes in one announcement: so it is judged when all of it has been heard.
  for (Entry* entry : completed_) judge(*entry, now);
  for (Entry* entry : completed_) complete(*entry, now);
  completed_.clear();
  // Only now: a repeat in this announcement may have been asked for before its eviction was applied.
  prune_retired();
  return {};
}

Status Decider::hear_repeat(int member, const Repeat& repeat, Time now) {
  const auto index = static_cast<size_t>(member);
  const auto found = by_cache_id_.find(repeat.cache_id);
  const auto retired = found == by_cache_id_.end() ? retired_.find(repeat.cache_id) : retired_.end();
  if (found == by_cache_id_.end() && retired == retired_.end()) {
    return Status::internal(
        text("rank ", options_.ranks[index], " repeats cache number ", repeat.cache_id, ", which is unknown"));
  }
  std::vector<uint32_t>& asks = found != by_cache_id_.end() ? found->second->asks : retired->second.asks;
  if (repeat.generation != asks[index]) {
    return Status::internal(text("rank ", options_.ranks[index], " repeats cache number ", repeat.cache_id,
                                 " in generation ", repeat.generation, ", expected ", asks[index]));
  }
  ++asks[index];
  if (found == by_cache_id_.end()) {
    return hear_request(member, request_behind(retired->second.agreed, member, set_size_), now);
  }
  Entry& entry = *found->second;
  return add_asker(entry, member, entry.agreed.group, entry.agreed.group_size, now);
}

Status Decider::hear_request(int member, const Request& request, Time now) {
  Entry& entry = entry_of(request.name);
  if (entry.cache_id != 0) ++entry.asks[static_cast<size_t>(member)];
  HALAY_RETURN_IF_ERROR(add_asker(entry, member, request.group, request.group_size, now));
  entry.full.emplace_back(member, request);
  return {};
}

Status Decider::add_asker(Entry& entry, int member, NameId group, uint32_t group_size, Time now) {
  const auto index = static_cast<size_t>(member);
  if (joined_.test(member)) {
    return Status::internal(text("rank ", options_.ranks[index], " asks for ", names_.text(entry.name), " in ",
                                 options_.label, " after it has joined"));
  }
  if (entry.asked.test(member)) {
    return Status::internal(
        text("rank ", options_.ranks[index], " asks twice for ", names_.text(entry.name), " in ", options_.label));
  }
  Peer& peer = peers_[index];
  if (!entry.open) {
    entry.open = true;
    entry.first_asked = now;
    entry.earliest_applied = peer.applied;
    open_.push_back(entry);
    if (group_size > 0) join_group(entry, group, group_size);
  }
  entry.earliest_applied = std::min(entry.earliest_applied, peer.applied);
  entry.asked.set(member);
  peer.heard = true;
  peer.last_asked = entry.name;
  peer.last_asked_at = now;
  // One that has failed already fails for this member too.
  if (!entry.ready && is_complete(entry)) completed_.push_back(&entry);
  return {};
}

void Decider::join_group(Entry& entry, NameId name, uint32_t size) {
  std::unique_ptr<Group>& group = groups_[static_cast<uint32_t>(name)];
  if (!group) {
    group = std::make_unique<Group>();
    group->name = name;
    group->size = size;
  }
  entry.group = group.get();
  group->entries.push_back(&entry);
}

Entry& Decider::entry_of(NameId name) {
  std::unique_ptr<Entry>& entry = entries_[static_cast<uint32_t>(name)];
  if (!entry) entry = std::make_unique<Entry>(name, set_size_);
  return *entry;
}

Status Decider::hear_join(int member, Time now) {
  if (joined_.test(member)) {
    return Status::internal(
        text("rank ", options_.ranks[static_cast<size_t>(member)], " joins twice in ", options_.label));
  }
  if (joined_.empty()) joined_since_ = now;
  joined_.set(member);
  last_joined_ = member;
  for (Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (!entry->complete && !entry->ready && is_complete(*entry) && !std::ranges::count(completed_, entry)) {
      completed_.push_back(entry);
    }
  }
  return {};
}

void Decider::hear_urgent(int member) {
  for (Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (!entry->asked.test(member)) continue;
    entry->urgent = true;
    if (entry->ready) ready_urgent_ = true;
  }
}

bool Decider::is_complete(const Entry& entry) const {
  if (entry.asked.count() == set_size_) return true;
  if (joined_.empty()) return false;
  for (int member = 0; member < set_size_; ++member) {
    if (!entry.asked.test(member) && !joined_.test(member)) return false;
  }
  return true;
}

// All have asked: is it wrong? Then its group is.
void Decider::judge(Entry& entry, Time now) {
  if (entry.complete || entry.ready) return;
  entry.complete = true;
  evaluate(entry);
  if (!entry.fresh || entry.fresh->decision.status.ok()) return;
  const Status status = entry.fresh->decision.status;
  fail(entry, status, now);
}

// It is not wrong: ready, once its group is.
void Decider::complete(Entry& entry, Time now) {
  if (entry.ready) return;
  if (!entry.group) return make_ready(entry, now);
  Group& group = *entry.group;
  if (++group.complete_count < group.size) return;
  std::vector<Entry*> others;
  for (Entry* one : group.entries) {
    if (!one->complete) {
      others.push_back(one);
      continue;
    }
    one->group = nullptr;
    make_ready(*one, now);
  }
  group.complete_count = 0;
  group.entries = std::move(others);
  if (group.entries.empty()) groups_.erase(static_cast<uint32_t>(group.name));
}

// Says what the round leads to: the agreed Decision again, a fresh one, or why it fails.
void Decider::evaluate(Entry& entry) {
  entry.skipped.clear();
  if (!joined_.empty()) {
    for (int member = 0; member < set_size_; ++member) {
      if (joined_.test(member) && !entry.asked.test(member)) entry.skipped.push_back(member);
    }
  }
  entry.bytes = entry.agreed_bytes;
  if (entry.full.empty() && entry.skipped.empty()) return;

  std::ranges::sort(entry.full, {}, [](const auto& one) { return one.first; });
  std::vector<Request> repeated;
  repeated.reserve(static_cast<size_t>(set_size_));
  std::vector<Asked> asked;
  auto next_full = entry.full.begin();
  for (int member = 0; member < set_size_; ++member) {
    if (!entry.asked.test(member)) continue;
    if (next_full != entry.full.end() && next_full->first == member) {
      asked.push_back({member, &next_full->second});
      ++next_full;
    } else {
      asked.push_back({member, &repeated.emplace_back(request_behind(entry.agreed, member, set_size_))});
    }
  }
  const Round round{asked, entry.skipped, options_.ranks};
  Status status = validate(round, names_);
  if (status.ok() && entry.full.empty()) return;
  entry.fresh = std::make_unique<FreshDecision>();
  if (status.ok()) {
    Decision& decision = entry.fresh->decision = decide(round);
    int64_t rows = 0;
    for (const int64_t part : decision.rows) rows += part;
    const bool has_rows = traits_of(decision.kind).shapes == ShapeRule::rows;
    const int64_t elements = has_rows ? rows * decision.shape.row_elements() : decision.shape.element_count();
    entry.bytes = static_cast<size_t>(elements) * halay::bytes_of(decision.dtype);
    return;
  }
  entry.fresh->decision.kind = asked[0].request->kind;
  entry.fresh->decision.status = std::move(status);
}

void Decider::make_ready(Entry& entry, Time now) {
  if (ready_.empty()) first_ready_ = now;
  entry.ready = true;
  ready_.push_back(&entry);
  ready_bytes_ += entry.bytes;
  if (entry.urgent) ready_urgent_ = true;
  bursts_.ready(entry.place);
}

// With its group: all or nothing.
void Decider::fail(Entry& entry, const Status& status, Time now) {
  if (!entry.group) return fail_alone(entry, status, now);
  const auto found = groups_.find(static_cast<uint32_t>(entry.group->name));
  const std::unique_ptr<Group> group = std::move(found->second);
  groups_.erase(found);
  for (Entry* one : group->entries) {
    one->group = nullptr;
    fail_alone(*one, status, now);
  }
}

void Decider::fail_alone(Entry& entry, const Status& status, Time now) {
  if (entry.ready) return;
  const OpKind kind = entry.fresh          ? entry.fresh->decision.kind
                      : entry.full.empty() ? entry.agreed.kind
                                           : entry.full.front().second.kind;
  entry.fresh = std::make_unique<FreshDecision>();
  entry.fresh->decision.name = entry.name;
  entry.fresh->decision.kind = kind;
  entry.fresh->decision.status = status;
  entry.skipped.clear();  // nobody takes part
  entry.bytes = 0;
  close_now_ = true;
  make_ready(entry, now);
}

void Decider::leave(int member, const Status& why) {
  if (gone_.empty()) gone_why_ = why;
  gone_.set(member);
  peers_[static_cast<size_t>(member)].applied = UINT64_MAX;  // it needs nothing that is kept for the slowest
}

// Who has left asks for nothing more; who has joined and left is not needed.
void Decider::fail_for_gone(Time now) {
  if (gone_.empty()) return;
  std::vector<Entry*> hopeless;
  for (Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (entry->ready || entry->complete) continue;
    for (int member = 0; member < set_size_; ++member) {
      if (!gone_.test(member) || joined_.test(member) || entry->asked.test(member)) continue;
      hopeless.push_back(entry);
      break;
    }
  }
  for (Entry* entry : hopeless) {
    const std::string what = text(names_.text(entry->name), " needs it: ", gone_why_.text());
    fail(*entry, Status(gone_why_.code(), what, gone_why_.culprit()), now);
  }
}

void Decider::prune_retired() {
  if (retired_order_.empty()) return;
  const uint64_t applied = std::ranges::min(peers_, {}, &Peer::applied).applied;
  while (!retired_order_.empty() && retired_order_.front().first <= applied) {
    retired_.erase(retired_order_.front().second);
    retired_order_.pop_front();
  }
}

}  // namespace halay::negotiate
