// The control plane of one process set on one member: a state machine without threads, sockets or clock.
// It takes local Requests and the messages of other members, and gives messages to send and numbered DecisionLists.
// The member with the lowest rank is the decider: it alone orders (rule 1). It runs unchanged in the simulator.
// Thread: whoever holds the engine's token.   Owns: pending requests, the decision cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "types/decision.h"
#include "types/request.h"

namespace halay::control {

struct SetSpec {
  std::string label;           // for texts: "process set 0"
  std::vector<int32_t> ranks;  // world ranks, ascending; the member index is the position here
  int me = 0;
};

struct Limits {
  size_t fusion_bytes = 128u << 20;
  int64_t coalesce_us = 1000;    // at most so long the decider waits for company
  size_t cache_capacity = 1024;  // decisions; 0: no cache
  bool stall_check = true;
  int64_t stall_warning_ms = 60'000;
  int64_t op_deadline_ms = 1'800'000;
};

// A message for another member; `member` is its index in the set.
struct Outgoing {
  int member = 0;
  std::vector<std::byte> bytes;
};

struct Counters {
  uint64_t requests_sent = 0;  // Requests that travelled in full, with their name
  uint64_t repeats_sent = 0;   // known ones that travelled as a number
  uint64_t messages_sent = 0;
  uint64_t message_bytes_sent = 0;
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t lists = 0;
  uint64_t stall_warnings = 0;
};

// What a warning or a verdict needs to be told to people; the engine logs it.
struct Notice {
  std::string text;
};

class SetControl {
 public:
  SetControl(SetSpec spec, Limits limits, NameTable& names);
  ~SetControl();
  SetControl(const SetControl&) = delete;
  SetControl& operator=(const SetControl&) = delete;

  // This rank asks. The caller has seen to it that no request of this name is in flight here. `urgent`: a thread waits.
  void submit(Ticket ticket, const Request& request, bool urgent, Time now);
  // This rank has no more data; `ticket` completes when all members have joined.
  void join(Ticket ticket, Time now);
  // A thread now waits for something submitted earlier: the decider shall not wait for company.
  void urge(Time now);

  // A message of another member. Not ok: it cannot be understood, and the world must end with this text.
  Status receive(int member, std::span<const std::byte> message, Time now);

  // The member ended normally and said so: it will ask for nothing more. What all have asked for goes on; what needs it
  // fails with `why`, now and later, by the decider's lists. If it was the decider, everything undecided fails here.
  void leave(int member, const Status& why, Time now);

  // Tells what was submitted, decides what is ready, lets time pass: coalescing, stalls, deadlines. To be called after
  // submits and receives (once for many: what came together is told in one message), and when next_deadline() is over.
  void step(Time now);
  // When step() has something to do although nothing came; Time::never() if nothing.
  Time next_deadline() const;

  // Messages to send, in order; the caller takes all of them and clears the vector.
  std::vector<Outgoing>& outgoing();
  // The next DecisionList to execute, in order; null if there is none. Valid until the next call on this object.
  const DecisionList* next_list();
  std::vector<Notice>& notices();

  // Not ok: the decider does not answer, or what it sent contradicts what this member knows; the world must end with
  // this.
  Status status() const;

  const Counters& counters() const;
  // Operations of this rank that are submitted and not yet decided.
  size_t undecided() const;
  // For verdicts and `halay top`: what each member was last heard to submit, where known (decider only; else empty).
  std::string last_heard(int member, Time now) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halay::control
