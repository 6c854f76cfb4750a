#include "control/set_control.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "negotiate/asker.h"
#include "negotiate/decider.h"
#include "types/control_message.h"
#include "wire/control_codec.h"

namespace halay::control {
namespace {

// The decider fails an operation at its deadline; a member that has not heard of it so much later has lost the decider.
constexpr int64_t kAnswerGraceMs = 1000;

negotiate::DeciderOptions decider_options(const SetSpec& spec, const Limits& limits) {
  negotiate::DeciderOptions options;
  options.label = spec.label;
  options.ranks = spec.ranks;
  options.fusion_bytes = limits.fusion_bytes;
  options.coalesce_us = limits.coalesce_us;
  options.cache_capacity = limits.cache_capacity;
  options.stall_check = limits.stall_check;
  options.stall_warning_ms = limits.stall_warning_ms;
  options.op_deadline_ms = limits.op_deadline_ms;
  return options;
}

}  // namespace

struct SetControl::State {
  State(SetSpec spec_of, Limits limits_of, NameTable& names_of)
      : spec(std::move(spec_of)),
        limits(limits_of),
        names(names_of),
        set_size(static_cast<int>(spec.ranks.size())),
        asker(spec.me, set_size, names_of) {
    HALAY_ASSERT(spec.me >= 0 && spec.me < set_size);
    if (spec.me == 0) decider = std::make_unique<negotiate::Decider>(decider_options(spec, limits), names);
  }

  const SetSpec spec;
  const Limits limits;
  NameTable& names;
  const int set_size;
  negotiate::Asker asker;
  std::unique_ptr<negotiate::Decider> decider;  // of member 0
  bool heard = false;                           // since the last step
  std::vector<Outgoing> outgoing;
  std::vector<Notice> notices;
  Counters counters;
  Status status;
  Announcement heard_news;  // kept for their memory
  std::vector<std::byte> bytes;

  void fail(Status why) {
    if (status.ok()) status = std::move(why);
  }
  int32_t rank_of(int member) const { return spec.ranks[static_cast<size_t>(member)]; }

  std::unique_ptr<ListMessage> blank_list() {
    std::unique_ptr<ListMessage> list = asker.take_spare();
    return list ? std::move(list) : std::make_unique<ListMessage>();
  }

  void send(int member) {
    ++counters.messages_sent;
    counters.message_bytes_sent += bytes.size();
    outgoing.push_back({member, bytes});
  }

  // What this member has to say, to itself or by a message.
  void tell(Time now) {
    if (!asker.has_news()) return;
    const Announcement& news = asker.news();
    if (decider) {
      fail(decider->hear(0, news, now));
    } else {
      counters.requests_sent += news.requests.size();
      counters.repeats_sent += news.repeats.size();
      bytes.clear();
      wire::encode(news, names, bytes);
      send(0);
    }
    asker.told();
  }

  void publish(std::unique_ptr<ListMessage> list, Time now) {
    if (set_size > 1) {
      bytes.clear();
      wire::encode(*list, names, bytes);
      for (int member = 1; member < set_size; ++member) send(member);
    }
    fail(asker.receive(std::move(list), now));
  }

  void decide(Time now) {
    while (auto spare = asker.take_spare()) decider->reuse(std::move(spare));
    decider->step(now);
    while (auto list = decider->take_list()) publish(std::move(list), now);
    for (std::string& warning : decider->warnings()) notices.push_back({std::move(warning)});
    decider->warnings().clear();
    counters.stall_warnings = decider->warning_count();
  }

  Time answer_due() const {
    const Time since = asker.waiting_since();
    if (decider || limits.op_deadline_ms <= 0 || since == Time::never()) return Time::never();
    return since.plus_ms(limits.op_deadline_ms).plus_ms(kAnswerGraceMs);
  }

  Status receive(int member, std::span<const std::byte> message, Time now) {
    if (decider) {
      HALAY_ASSERT(member > 0 && member < set_size);
      HALAY_RETURN_IF_ERROR(wire::decode(message, set_size, names, heard_news));
      return decider->hear(member, heard_news, now);
    }
    if (member != 0) {
      return Status::internal(text("a control message in ", spec.label, ", which rank ", rank_of(0), " decides"));
    }
    std::unique_ptr<ListMessage> list = blank_list();
    HALAY_RETURN_IF_ERROR(wire::decode(message, set_size, names, *list));
    return asker.receive(std::move(list), now);
  }
};

SetControl::SetControl(SetSpec spec, Limits limits, NameTable& names)
    : state_(std::make_unique<State>(std::move(spec), limits, names)) {}
SetControl::~SetControl() = default;

void SetControl::submit(Ticket ticket, const Request& request, bool urgent, Time now) {
  state_->asker.submit(ticket, request, urgent, now);
}

void SetControl::join(Ticket ticket, Time now) { state_->asker.join(ticket, now); }

void SetControl::urge(Time /*now*/) { state_->asker.urge(); }

Status SetControl::receive(int member, std::span<const std::byte> message, Time now) {
  State& s = *state_;
  Status status = s.receive(member, message, now);
  s.heard = true;
  if (status.ok()) return status;
  Status told(status.code(), text("from rank ", s.rank_of(member), ": ", status.text()), s.rank_of(member));
  s.fail(told);
  return told;
}

void SetControl::leave(int member, const Status& why, Time /*now*/) {
  State& s = *state_;
  s.heard = true;
  if (s.decider) {
    s.decider->leave(member, why);
  } else if (member == 0) {
    s.asker.end(why);
  }
}

void SetControl::step(Time now) {
  State& s = *state_;
  s.heard = false;
  s.tell(now);
  if (s.decider) {
    s.decide(now);
  } else if (now >= s.answer_due()) {
    s.fail(Status::peer_lost(s.rank_of(0), text("rank ", s.rank_of(0), ", which decides in ", s.spec.label,
                                                ", did not answer: ", s.asker.waiting_for(), " is undecided ",
                                                static_cast<int64_t>(seconds_between(s.asker.waiting_since(), now)),
                                                " s after it was asked for")));
  }
}

Time SetControl::next_deadline() const {
  const State& s = *state_;
  if (s.heard || s.asker.has_news() || (s.status.ok() && s.asker.status().ok() && s.asker.has_list())) return Time{};
  return s.decider ? s.decider->next_deadline() : s.status.ok() ? s.answer_due() : Time::never();
}

std::vector<Outgoing>& SetControl::outgoing() { return state_->outgoing; }

const DecisionList* SetControl::next_list() {
  State& s = *state_;
  const DecisionList* list = s.asker.next_list();
  if (list) ++s.counters.lists;
  return list;
}

std::vector<Notice>& SetControl::notices() { return state_->notices; }

Status SetControl::status() const { return state_->status.ok() ? state_->asker.status() : state_->status; }

const Counters& SetControl::counters() const {
  state_->counters.cache_hits = state_->asker.cache_hits();
  state_->counters.cache_misses = state_->asker.cache_misses();
  return state_->counters;
}

size_t SetControl::undecided() const { return state_->asker.undecided(); }

std::string SetControl::last_heard(int member, Time now) const {
  return state_->decider ? state_->decider->last_heard(member, now) : std::string();
}

}  // namespace halay::control
