// One member's side of the negotiation: what it has asked for, the Decisions that it holds, and the lists that answer.
// Thread: whoever holds the engine's token.   Owns: operations that are not decided, cached Decisions, lists to apply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "negotiate/linked_list.h"
#include "types/control_message.h"

namespace halay::negotiate {

class Asker {
 public:
  Asker(int me, int set_size, NameTable& names);
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  // No request of this name may be undecided. After a join, requests are held back until the join has ended.
  void submit(Ticket ticket, const Request& request, bool urgent, Time now);
  void join(Ticket ticket, Time now);
  // A thread waits for what is undecided.
  void urge();

  // Whether the decider has to hear something; what it is; and that it has been told.
  bool has_news() const;
  Announcement& news();
  void told();

  // The decider has left: everything undecided, now and later, fails with `why`.
  void end(const Status& why);

  // Lists come in order, each once. `internal` if this one cannot be the next.
  Status receive(std::unique_ptr<ListMessage> list, Time now);
  // Applies the next list; null if there is none, or if it contradicts what this member knows (then see status()).
  // Valid until the next call.
  const DecisionList* next_list();
  // A list that is not used any more, for its memory; null if there is none.
  std::unique_ptr<ListMessage> take_spare();

  // Whether next_list() has something to give.
  bool has_list() const { return queue_head_ < queue_.size() || (!ended_.ok() && undecided() > 0); }

  const Status& status() const { return status_; }
  size_t undecided() const { return undecided_ + held_.size() + (join_ticket_ != Ticket::none ? 1 : 0); }
  uint64_t applied() const { return applied_; }
  // When the oldest undecided operation was asked for, never() if there is none; a join counts from the last list. Its
  // name.
  Time waiting_since() const;
  std::string waiting_for() const;
  uint64_t cache_hits() const { return cache_hits_; }
  uint64_t cache_misses() const { return cache_misses_; }

 private:
  struct Known {
    Decision decision;  // with this member's own dim 0
    uint32_t asks = 0;  // the generation of its next request under this id
  };
  struct Slot {
    NameId name{};
    OpKind kind = OpKind::allreduce;  // of what was asked for
    std::unique_ptr<Known> known;
    Ticket ticket = Ticket::none;
    bool pending = false;
    Time since;
    int64_t rows = 0;  // dim 0 of what was asked for
    Link<Slot> link;
  };
  struct Held {
    Ticket ticket = Ticket::none;
    Request request;
    bool urgent = false;
  };

  void ask(Ticket ticket, const Request& request, bool urgent, Time now);
  Slot& slot_of(NameId name);
  Ticket answer(Slot& slot);
  void apply(const ListItem& item);
  void apply_repeat(uint32_t cache_id);
  void apply_fresh(FreshDecision& fresh);
  void apply_failed(const FreshDecision& fresh);
  void apply_evict(uint32_t cache_id);
  void apply_join(uint32_t last_joined);
  Ticket end_join();
  void broken(std::string_view what);
  const DecisionList* failed_list();

  const int me_;
  const int set_size_;
  NameTable& names_;
  std::unordered_map<uint32_t, Slot> slots_;  // by name: those that are pending or known
  std::unordered_map<uint32_t, Slot*> by_cache_id_;
  LinkedList<Slot, &Slot::link> pending_;  // oldest first
  size_t undecided_ = 0;

  Announcement news_;
  size_t evictions_untold_ = 0;
  bool unurged_ = false;  // something undecided was asked for without `urgent`
  Ticket join_ticket_ = Ticket::none;
  bool joined_ = false;
  std::vector<Held> held_;

  std::vector<std::unique_ptr<ListMessage>> queue_;
  size_t queue_head_ = 0;
  std::unique_ptr<ListMessage> current_;
  std::vector<std::unique_ptr<Known>> evicted_;  // by the current list: its pointers must hold
  std::vector<std::unique_ptr<ListMessage>> spare_;
  uint64_t received_ = 0;
  uint64_t applied_ = 0;
  Time last_list_at_;
  DecisionList list_;
  Status ended_;  // not ok: why nothing will be decided any more
  std::vector<Decision> failures_;
  Decision join_decision_;

  Status status_;
  uint64_t cache_hits_ = 0;
  uint64_t cache_misses_ = 0;
};

}  // namespace halay::negotiate
