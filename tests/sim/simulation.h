// Runs a Program: SetControls of all ranks, messages that are late but in order between two ranks, a clock that jumps.
// Checks the invariants while it runs; the first one that breaks ends the run with words.
// Thread: one.   Owns: everything in it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/name_table.h"
#include "control/set_control.h"
#include "program.h"

namespace halay::sim {

struct Report {
  std::string broken;  // empty: all invariants held
  uint64_t tickets = 0;
  uint64_t failed_tickets = 0;
  uint64_t lists = 0;
  uint64_t repeats_sent = 0;
  uint64_t requests_sent = 0;
  uint64_t warnings = 0;
  int64_t end_ms = 0;
};

class Simulation {
 public:
  explicit Simulation(const Program& program);
  ~Simulation();
  Report run();

 private:
  struct Member;
  struct Set;
  struct Event;
  enum class EventKind : uint8_t { turn, deadline, message, goodbye, leave };

  void add_event(Time at, EventKind kind, const Set& set, int member, int from = -1, std::vector<std::byte> bytes = {});
  void handle(Event& event);
  void act(Set& set, Member& member);
  bool may_submit(const Member& member, const Action& action, const Set& set) const;
  void submit(Set& set, Member& member, const Action& action);
  void pump(Set& set, Member& member);
  void send(Set& set, Member& member);
  void take_lists(Set& set, Member& member);
  void take_one(Set& set, Member& member, const DecisionList& list);
  void check_decided(Set& set, Member& member, const DecisionList& list, size_t index);
  void check_end();
  void leave_all();
  Time arrival(int32_t from, int32_t to);
  void give_up(Set& set, Member& member);
  bool lost(int32_t rank) const;
  void broken(const Set& set, const Member& member, const std::string& what);

  const Program& program_;
  Random random_;
  Time now_;
  std::vector<std::unique_ptr<NameTable>> names_;  // by rank
  std::vector<std::unique_ptr<Set>> sets_;
  std::vector<Event> heap_;
  uint64_t event_count_ = 0;
  std::map<std::pair<int32_t, int32_t>, Time> last_arrival_;  // by sender and receiver
  Report report_;
};

}  // namespace halay::sim
