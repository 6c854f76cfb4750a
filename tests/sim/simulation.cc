#include "simulation.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "fusion/fusion.h"

namespace halay::sim {
namespace {

// What must be the same on all members of a list and of what is packed from it.
std::string shared_text(const DecisionList& list, const NameTable& names, int set_size, int me) {
  std::string out = text(list.number, " joined ", list.joined, " limit ", list.fusion_bytes, '\n');
  for (const Decided& decided : list.decided) {
    const Decision& d = *decided.decision;
    out += text(d.cache_id, ' ', names.text(d.name), ' ', d.kind, ' ', d.last_joined, ' ', d.status.text());
    if (d.status.ok() && d.kind != OpKind::join) {
      out +=
          text(' ', d.dtype, ' ', d.reduce_op, ' ', static_cast<int>(d.divisor), ' ', static_cast<int>(d.device), ' ',
               d.root, ' ', d.prescale, ' ', d.postscale, ' ', d.rows, ' ', names.text(d.group), ' ', d.group_size);
      Shape shape = d.shape;
      if (traits_of(d.kind).shapes == ShapeRule::rows) shape.set_dim(0, 0);
      out += text_of(shape);
    }
    out += '\n';
  }
  for (const Batch& batch : fusion::pack(list, set_size, me)) {
    out += text("batch ", batch.list_number, ' ', batch.kind, ' ', batch.dtype, ' ', batch.reduce_op, ' ',
                batch.divisor, ' ', batch.root, ' ', batch.members, ' ', batch.counts, ' ', batch.last_joined);
    for (const BatchTensor& tensor : batch.tensors) out += text(' ', names.text(tensor.name));
    out += '\n';
  }
  return out;
}

Request local_request(const Operation& operation, size_t member, NameTable& names) {
  Request request = operation.requests[member];
  request.name = names.intern(operation.name);
  if (operation.group.empty()) return request;
  request.group = names.intern(operation.group);
  return request;
}

}  // namespace

struct Simulation::Event {
  Time at;
  uint64_t order = 0;
  EventKind kind = EventKind::turn;
  int set = 0;
  int member = 0;
  int from = -1;  // of a message or a goodbye
  std::vector<std::byte> bytes;
  bool operator<(const Event& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
};

struct Simulation::Member {
  int index = 0;
  int32_t rank = 0;
  NameTable* names = nullptr;
  std::unique_ptr<control::SetControl> control;
  size_t next_action = 0;
  std::map<std::string, bool> in_flight;
  struct Submitted {
    int operation = -1;  // -1: join
    bool done = false;
  };
  std::vector<Submitted> tickets{1};
  size_t open_tickets = 0;
  bool in_join = false;
  bool blocked = false;
  size_t joins_done = 0;
  size_t lists_done = 0;
  Time wake_at = Time::never();
  bool ended = false;
};

struct Simulation::Set {
  int index = 0;
  const SetProgram* program = nullptr;
  std::vector<Member> members;
  bool disturbed = false;          // somebody left while others still wanted something of it
  std::vector<std::string> lists;  // what the first member saw of each list
  std::vector<std::vector<int>>
      operations;  // of each list: which operation each of its Decisions is for; -1: not known
};

Simulation::Simulation(const Program& program) : program_(program), random_(program.seed + 77) {
  for (int rank = 0; rank < program.world_size; ++rank) {
    names_.push_back(std::make_unique<NameTable>());
    // Numbers of names differ between ranks.
    for (int i = 0; i < rank; ++i) names_.back()->intern("only here " + std::to_string(i));
  }
  for (const SetProgram& set_program : program.sets) {
    auto set = std::make_unique<Set>();
    set->index = static_cast<int>(sets_.size());
    set->program = &set_program;
    const int p = static_cast<int>(set_program.ranks.size());
    for (int i = 0; i < p; ++i) {
      Member& member = set->members.emplace_back();
      member.index = i;
      member.rank = set_program.ranks[static_cast<size_t>(i)];
      member.names = names_[static_cast<size_t>(member.rank)].get();
      control::SetSpec spec{text("process set ", set->index), set_program.ranks, i};
      member.control = std::make_unique<control::SetControl>(spec, program.limits, *member.names);
    }
    sets_.push_back(std::move(set));
  }
  for (const auto& set : sets_) {
    for (const Member& member : set->members) {
      add_event(Time{random_.between(0, 100'000)}, EventKind::turn, *set, member.index);
    }
  }
  if (program.leaving_rank >= 0) {
    add_event(Time{}.plus_us(program.leaving_at_us), EventKind::leave, *sets_[0], 0);
  }
}

Simulation::~Simulation() = default;

void Simulation::add_event(Time at, EventKind kind, const Set& set, int member, int from,
                           std::vector<std::byte> bytes) {
  heap_.push_back({at, event_count_++, kind, set.index, member, from, std::move(bytes)});
  std::push_heap(heap_.begin(), heap_.end());
}

Report Simulation::run() {
  constexpr uint64_t kMostEvents = 2'000'000;
  while (!heap_.empty() && report_.broken.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    Event event = std::move(heap_.back());
    heap_.pop_back();
    now_ = std::max(now_, event.at);
    handle(event);
    if (event_count_ > kMostEvents) report_.broken = "it does not come to an end";
  }
  if (report_.broken.empty()) check_end();
  report_.end_ms = now_.ns / 1'000'000;
  return report_;
}

void Simulation::handle(Event& event) {
  if (event.kind == EventKind::leave) return leave_all();
  Set& set = *sets_[static_cast<size_t>(event.set)];
  Member& member = set.members[static_cast<size_t>(event.member)];
  if (member.ended) return;
  switch (event.kind) {
    case EventKind::turn:
      act(set, member);
      if (random_.chance(70)) pump(set, member);
      return;
    case EventKind::message: {
      if (lost(member.rank) || lost(set.members[static_cast<size_t>(event.from)].rank)) return;
      const Status status = member.control->receive(event.from, event.bytes, now_);
      if (!status.ok()) return broken(set, member, status.text());
      break;
    }
    case EventKind::goodbye:
      member.control->leave(event.from, Status::peer_lost(program_.leaving_rank, "it finished"), now_);
      break;
    case EventKind::deadline:
      if (now_ < member.wake_at) return;
      member.wake_at = Time::never();
      break;
    case EventKind::leave:
      break;
  }
  pump(set, member);
}

// The rank ends normally: everything that it has said arrives, then its goodbye, then nothing.
void Simulation::leave_all() {
  for (const auto& set : sets_) {
    for (Member& member : set->members) {
      if (member.rank != program_.leaving_rank) continue;
      pump(*set, member);
      member.ended = true;
      member.open_tickets = 0;
      for (const Member& other : set->members) {
        if (other.rank == member.rank) continue;
        add_event(arrival(member.rank, other.rank), EventKind::goodbye, *set, other.index, member.index);
      }
    }
  }
}

bool Simulation::lost(int32_t rank) const {
  return rank == program_.silent_rank && now_ >= Time{}.plus_ms(program_.silent_from_ms);
}

bool Simulation::may_submit(const Member& member, const Action& action, const Set& set) const {
  if (member.in_join || now_ < Time{}.plus_ms(action.not_before_ms)) return false;
  return std::ranges::none_of(action.operations, [&](size_t operation) {
    return member.in_flight.contains(set.program->operations[operation].name);
  });
}

void Simulation::act(Set& set, Member& member) {
  const auto& actions = set.program->actions[static_cast<size_t>(member.index)];
  if (member.next_action < actions.size() && may_submit(member, actions[member.next_action], set)) {
    submit(set, member, actions[member.next_action++]);
  }
  if (random_.chance(10)) member.control->urge(now_);
  if (member.next_action == actions.size()) return pump(set, member);
  const Action& next = actions[member.next_action];
  const Time not_before = Time{}.plus_ms(next.not_before_ms);
  // Whoever is blocked by something in flight goes on when that ends.
  const bool blocked = member.blocked = now_ >= not_before && !may_submit(member, next, set);
  if (blocked || now_ < not_before) pump(set, member);
  if (blocked) return;
  add_event(std::max(now_.plus_us(random_.between(0, program_.pause_us_most)), not_before), EventKind::turn, set,
            member.index);
}

void Simulation::submit(Set& set, Member& member, const Action& action) {
  if (action.operations.empty()) {
    member.in_join = true;
    member.tickets.push_back({});
    ++member.open_tickets;
    ++report_.tickets;
    return member.control->join(static_cast<Ticket>(member.tickets.size() - 1), now_);
  }
  for (const size_t index : action.operations) {
    const Operation& operation = set.program->operations[index];
    Request request = local_request(operation, static_cast<size_t>(member.index), *member.names);
    if (!operation.group.empty()) request.group_size = static_cast<uint32_t>(action.operations.size());
    member.in_flight[operation.name] = true;
    member.tickets.push_back({static_cast<int>(index), false});
    ++member.open_tickets;
    ++report_.tickets;
    member.control->submit(static_cast<Ticket>(member.tickets.size() - 1), request, random_.chance(20), now_);
  }
}

void Simulation::pump(Set& set, Member& member) {
  // Twice where the end of a join lets something go.
  for (int round = 0; round < 3; ++round) {
    member.control->step(now_);
    send(set, member);
    take_lists(set, member);
    if (!report_.broken.empty()) return;
    if (member.control->next_deadline() > now_) break;
    if (round == 2) return broken(set, member, "after step() there is still something to do");
  }
  if (const Status status = member.control->status(); !status.ok()) {
    if (program_.silent_rank < 0) return broken(set, member, status.text());
    return give_up(set, member);
  }
  report_.warnings += member.control->notices().size();
  member.control->notices().clear();
  const Time wake = member.control->next_deadline();
  if (wake == Time::never() || wake >= member.wake_at) return;
  member.wake_at = wake;
  add_event(wake, EventKind::deadline, set, member.index);
}

// Late, but after all that went between these two before.
Time Simulation::arrival(int32_t from, int32_t to) {
  Time& last = last_arrival_[{from, to}];
  last = std::max(last, now_.plus_us(random_.between(0, program_.delay_us_most)));
  return last;
}

void Simulation::send(Set& set, Member& member) {
  for (control::Outgoing& message : member.control->outgoing()) {
    const Time at = arrival(member.rank, set.members[static_cast<size_t>(message.member)].rank);
    if (lost(member.rank)) continue;
    add_event(at, EventKind::message, set, message.member, member.index, std::move(message.bytes));
  }
  member.control->outgoing().clear();
}

void Simulation::take_lists(Set& set, Member& member) {
  while (const DecisionList* list = member.control->next_list()) {
    take_one(set, member, *list);
    if (!report_.broken.empty()) return;
  }
}

void Simulation::take_one(Set& set, Member& member, const DecisionList& list) {
  const size_t p = set.members.size();
  if (list.number == 0) {  // its decider has left
    set.disturbed = true;
    for (size_t i = 0; i < list.decided.size(); ++i) check_decided(set, member, list, i);
    return;
  }
  if (list.number != ++member.lists_done) return broken(set, member, text("list ", list.number, " is not the next"));
  const std::string shared = shared_text(list, *member.names, static_cast<int>(p), member.index);
  if (set.lists.size() < list.number) {
    set.lists.push_back(shared);
    set.operations.emplace_back(list.decided.size(), -1);
    ++report_.lists;
  }
  if (set.lists[list.number - 1] != shared) {
    return broken(set, member, text("sees another list: ", shared, "\nthan: ", set.lists[list.number - 1]));
  }
  for (size_t i = 0; i < list.decided.size(); ++i) check_decided(set, member, list, i);
}

void Simulation::check_decided(Set& set, Member& member, const DecisionList& list, size_t index) {
  const auto& [decision, ticket] = list.decided[index];
  if (ticket == Ticket::none) {
    const bool skipped = std::ranges::binary_search(list.joined, member.index);
    if (decision->status.ok() && !skipped)
      return broken(set, member, "got no ticket for a Decision in which it takes part");
    return;
  }
  Member::Submitted& submitted = member.tickets[static_cast<size_t>(ticket)];
  if (submitted.done) return broken(set, member, "has a ticket that ended twice");
  submitted.done = true;
  --member.open_tickets;
  if (!decision->status.ok()) ++report_.failed_tickets;
  if (program_.leaving_rank >= 0 && decision->status.code() == Code::peer_lost) set.disturbed = true;
  if (std::exchange(member.blocked, false)) {
    add_event(now_.plus_us(random_.between(0, program_.pause_us_most)), EventKind::turn, set, member.index);
  }
  if (submitted.operation < 0) {
    member.in_join = false;
    ++member.joins_done;
    if (decision->kind != OpKind::join) broken(set, member, "has a join that ended as something else");
    if (!decision->status.ok() && program_.silent_rank < 0 && !set.disturbed)
      broken(set, member, decision->status.text());
    return;
  }
  const Operation& operation = set.program->operations[static_cast<size_t>(submitted.operation)];
  const auto me = static_cast<size_t>(member.index);
  member.in_flight.erase(operation.name);
  if (member.names->text(decision->name) != operation.name) return broken(set, member, "got another name");
  // Where messages are lost, operations fail on some, and later ones may meet an earlier round: that is the program's
  // fault.
  if (program_.silent_rank >= 0 || set.disturbed) return;
  // All members must mean the same operation.
  int& meant = set.operations[list.number - 1][index];
  if (meant < 0) meant = submitted.operation;
  if (meant != submitted.operation)
    return broken(set, member, text(operation.name, " was matched with another round of it"));
  if (decision->status.code() != operation.expected) {
    return broken(set, member,
                  text(operation.name, " ended with ", decision->status.code(), ' ', decision->status.text(),
                       ", expected ", operation.expected));
  }
  if (!decision->status.ok()) return;
  const Request& request = operation.requests[me];
  const bool shaped = traits_of(request.kind).shapes != ShapeRule::none;
  if (decision->kind != request.kind || (shaped && !(decision->shape == request.shape))) {
    return broken(set, member, text(operation.name, " was decided with another kind or shape"));
  }
  for (size_t m = 0; m < set.members.size(); ++m) {
    if (operation.takes_part[m] == std::ranges::binary_search(list.joined, static_cast<int>(m))) {
      return broken(set, member, text(operation.name, " was decided with wrong ranks: skipped ", list.joined));
    }
    if (request.kind == OpKind::allgather && decision->rows[m] != operation.requests[m].shape[0]) {
      return broken(set, member, text(operation.name, " was decided with rows ", decision->rows));
    }
    for (size_t to = 0; request.kind == OpKind::alltoall && to < set.members.size(); ++to) {
      if (decision->rows[m * set.members.size() + to] != operation.requests[m].splits[to]) {
        return broken(set, member, text(operation.name, " was decided with rows ", decision->rows));
      }
    }
  }
}

// The world of this rank ends: so do its tickets.
void Simulation::give_up(Set& set, Member& member) {
  member.ended = true;
  member.open_tickets = 0;
  if (now_ < Time{}.plus_ms(program_.limits.op_deadline_ms)) broken(set, member, "gave up before the deadline");
}

void Simulation::check_end() {
  for (const auto& set : sets_) {
    for (const Member& member : set->members) {
      if (member.open_tickets > 0)
        return broken(*set, member, text("has ", member.open_tickets, " tickets that never ended"));
      if (member.control->undecided() > 0 && !member.ended)
        return broken(*set, member, "has undecided operations at the end");
      if (!member.ended && member.next_action < set->program->actions[static_cast<size_t>(member.index)].size()) {
        return broken(*set, member, "did not come to its end");
      }
      if (program_.silent_rank < 0 && !member.ended && member.lists_done != set->lists.size()) {
        return broken(*set, member, "did not see all lists");
      }
      const control::Counters& counters = member.control->counters();
      report_.repeats_sent += counters.repeats_sent;
      report_.requests_sent += counters.requests_sent;
    }
  }
}

void Simulation::broken(const Set& set, const Member& member, const std::string& what) {
  if (!report_.broken.empty()) return;
  report_.broken = text("process set ", set.index, ", rank ", member.rank, " at ", now_.ns / 1000, " us: ", what);
}

}  // namespace halay::sim
