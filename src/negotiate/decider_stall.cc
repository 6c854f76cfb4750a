// Stalls and deadlines: who waits for whom, in words.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "negotiate/decider.h"
#include "negotiate/validate.h"

namespace halay::negotiate {
namespace {

constexpr size_t kShownTensors = 6;

std::string seconds_text(Time from, Time to) { return text(std::round(seconds_between(from, to) * 10) / 10, " s"); }

}  // namespace

void Decider::check_deadlines(Time now) {
  if (options_.op_deadline_ms <= 0) return;
  // All texts first: what fails now is also what others wait for.
  std::vector<std::pair<Entry*, Status>> expired;
  for (Entry* entry = open_.front(); entry && entry->first_asked.plus_ms(options_.op_deadline_ms) <= now;
       entry = open_.after(*entry)) {
    if (!entry->ready) expired.emplace_back(entry, Status::stalled(waits_text(*entry, now)));
  }
  for (const auto& [entry, status] : expired) fail(*entry, status, now);
}

void Decider::check_join(Time now) {
  if (joined_.empty()) return;
  for (int member = 0; member < set_size_; ++member) {
    if (!gone_.test(member) || joined_.test(member)) continue;
    return fail_join(Status(gone_why_.code(), text("join needs it: ", gone_why_.text()), gone_why_.culprit()), now);
  }
  if (now < join_deadline()) return;
  MemberSet others(set_size_);
  for (int member = 0; member < set_size_; ++member) {
    if (!joined_.test(member)) others.set(member);
  }
  fail_join(
      Status::stalled(text("join is stalled in ", options_.label, ": nothing was decided for ",
                           seconds_text(std::max(joined_since_, last_close_at_), now), ", and ",
                           ranks_text(others.members(), options_.ranks), " did not join", others_text(others, now))),
      now);
}

// What could be done without those that had joined is decided first.
void Decider::fail_join(Status why, Time now) {
  close(now);
  FreshDecision failed;
  failed.decision.kind = OpKind::join;
  failed.decision.status = std::move(why);
  failed.asked = joined_.members();
  ListMessage& list = new_list(now);
  list.items.push_back({ListItemKind::failed, 0});
  list.fresh.push_back(std::move(failed));
  clear_joined();
}

Time Decider::join_deadline() const {
  if (options_.op_deadline_ms <= 0 || joined_.empty() || joined_.count() == set_size_) return Time::never();
  return std::max(joined_since_, last_close_at_).plus_ms(options_.op_deadline_ms);
}

Time Decider::stall_warning_at() const {
  const Entry* oldest = open_.front();
  if (!options_.stall_check || options_.stall_warning_ms <= 0 || !oldest) return Time::never();
  const Time first = oldest->first_asked.plus_ms(options_.stall_warning_ms);
  return warning_count_ == 0 ? first : std::max(first, warned_at_.plus_ms(options_.stall_warning_ms));
}

void Decider::check_stalls(Time now) {
  if (now < stall_warning_at()) return;
  std::string list;
  size_t count = 0;
  MemberSet missed(set_size_);
  for (const Entry* entry = open_.front(); entry && entry->first_asked.plus_ms(options_.stall_warning_ms) <= now;
       entry = open_.after(*entry)) {
    if (entry->ready) continue;
    for (const int member : missing(*entry)) missed.set(member);
    if (++count > kShownTensors) continue;
    list += text(count == 1 ? "" : "; ", names_.text(entry->name), " since ", seconds_text(entry->first_asked, now),
                 missing_text(*entry));
  }
  if (count == 0) return;
  if (count > kShownTensors) list += text("; and ", count - kShownTensors, " more");
  warned_at_ = now;
  ++warning_count_;
  warnings_.push_back(text(options_.label, ": ", count, count == 1 ? " operation waits" : " operations wait",
                           " for ranks that have not asked: ", list, others_text(missed, now)));
}

Time Decider::next_deadline() const {
  Time next = std::min(join_deadline(), stall_warning_at());
  if (joined_.count() == set_size_) return Time{};
  if (!ready_.empty()) next = std::min(next, due(Time{}) ? Time{} : first_ready_.plus_us(options_.coalesce_us));
  if (const Entry* oldest = open_.front(); oldest && options_.op_deadline_ms > 0) {
    next = std::min(next, oldest->first_asked.plus_ms(options_.op_deadline_ms));
  }
  return next;
}

std::vector<int> Decider::missing(const Entry& entry) const {
  std::vector<int> out;
  for (int member = 0; member < set_size_; ++member) {
    if (!entry.asked.test(member) && !joined_.test(member)) out.push_back(member);
  }
  return out;
}

// ", missing rank 1", or what else it waits for.
std::string Decider::missing_text(const Entry& entry) const {
  const std::vector<int> members = missing(entry);
  if (!members.empty()) return text(", missing ", ranks_text(members, options_.ranks));
  if (!entry.group) return {};
  const Group& group = *entry.group;
  std::string out =
      text(", whose group ", names_.text(group.name), " has ", group.complete_count, " of ", group.size, " tensors");
  for (const Entry* one : group.entries) {
    if (!one->complete) return text(out, " (", names_.text(one->name), missing_text(*one), ")");
  }
  return out;
}

std::string Decider::waits_text(const Entry& entry, Time now) const {
  MemberSet others(set_size_);
  for (const int member : missing(entry)) others.set(member);
  return text(names_.text(entry.name), " is stalled in ", options_.label, " after ",
              seconds_text(entry.first_asked, now), missing_text(entry), "; ",
              ranks_text(entry.asked.members(), options_.ranks), " asked for it", others_text(others, now));
}

// "; rank 1 waits for x1, missing rank 0; rank 2 …" for the first of them.
std::string Decider::others_text(const MemberSet& members, Time now) const {
  constexpr size_t kShownMembers = 4;
  std::string out;
  const std::vector<int> all = members.members();
  for (size_t i = 0; i < std::min(all.size(), kShownMembers); ++i) {
    out += text("; rank ", options_.ranks[static_cast<size_t>(all[i])], ' ', last_heard(all[i], now));
  }
  return out;
}

std::string Decider::last_heard(int member, Time now) const {
  std::string waits;
  size_t count = 0;
  for (const Entry* entry = open_.front(); entry; entry = open_.after(*entry)) {
    if (!entry->asked.test(member) || entry->ready) continue;
    if (++count > kShownTensors) continue;
    waits += text(count == 1 ? "waits for " : ", and for ", names_.text(entry->name), missing_text(*entry));
  }
  if (count > kShownTensors) waits += text(", and ", count - kShownTensors, " more");
  if (count > 0) return waits;
  if (joined_.test(member)) return "has joined";
  const Peer& peer = peers_[static_cast<size_t>(member)];
  if (!peer.heard) return "has asked for nothing yet";
  return text("last asked for ", names_.text(peer.last_asked), ", ", seconds_text(peer.last_asked_at, now), " ago");
}

}  // namespace halay::negotiate
