// The decider's side of the negotiation: who has asked for what, when a list is closed, what it says. It alone orders.
// A tensor is ready when every member that has not joined has asked for it, a group when all its tensors are.
// Thread: whoever holds the engine's token.   Owns: the table of tensors, the numbers of the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "negotiate/internal/entry.h"

namespace halay::negotiate {

struct DeciderOptions {
  std::string label;           // "process set 0"
  std::vector<int32_t> ranks;  // world ranks by member
  size_t fusion_bytes = 0;
  int64_t coalesce_us = 0;
  size_t cache_capacity = 0;
  bool stall_check = true;
  int64_t stall_warning_ms = 0;
  int64_t op_deadline_ms = 0;  // 0: none
};

class Decider {
 public:
  Decider(DeciderOptions options, NameTable& names);
  ~Decider();
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  // `internal`: this cannot have come from a member that follows the protocol.
  Status hear(int member, const Announcement& news, Time now);
  // The member ended normally: what it has not asked for fails with `why`, at the next step and later.
  void leave(int member, const Status& why);
  // Closes lists that are due, warns of stalls, fails what is over its deadline.
  void step(Time now);
  // When step() has something to do although nothing is heard.
  Time next_deadline() const;

  // The next closed list, in order, for every member; null if there is none.
  std::unique_ptr<ListMessage> take_list();
  // Memory for lists to come.
  void reuse(std::unique_ptr<ListMessage> list) { spare_.push_back(std::move(list)); }
  std::vector<std::string>& warnings() { return warnings_; }
  uint64_t warning_count() const { return warning_count_; }
  // What a member waits for, or did last.
  std::string last_heard(int member, Time now) const;
  // For tests: entries of evicted numbers that are still understood.
  size_t retired_count() const { return retired_.size(); }

 private:
  Status hear_repeat(int member, const Repeat& repeat, Time now);
  Status hear_request(int member, const Request& request, Time now);
  Status hear_join(int member, Time now);
  void hear_urgent(int member);
  Status add_asker(Entry& entry, int member, NameId group, uint32_t group_size, Time now);
  Entry& entry_of(NameId name);
  void join_group(Entry& entry, NameId name, uint32_t size);

  bool is_complete(const Entry& entry) const;
  void judge(Entry& entry, Time now);
  void complete(Entry& entry, Time now);
  void evaluate(Entry& entry);
  void make_ready(Entry& entry, Time now);
  void fail(Entry& entry, const Status& status, Time now);
  void fail_alone(Entry& entry, const Status& status, Time now);

  bool due(Time now) const;
  void close(Time now);
  void close_one(std::vector<Entry*>& left, Time now);
  void emit(Entry& entry, ListMessage& list);
  void assign_cache_id(Entry& entry, ListMessage& list);
  Entry* find_victim();
  void end_round(Entry& entry);
  ListMessage& new_list(Time now);

  void fail_for_gone(Time now);

  void end_join(Time now);
  void clear_joined();
  void prune_retired();

  void check_stalls(Time now);
  void check_deadlines(Time now);
  void check_join(Time now);
  void fail_join(Status why, Time now);
  Time stall_warning_at() const;
  Time join_deadline() const;
  std::string missing_text(const Entry& entry) const;
  std::string waits_text(const Entry& entry, Time now) const;
  std::string others_text(const MemberSet& members, Time now) const;
  std::vector<int> missing(const Entry& entry) const;

  const DeciderOptions options_;
  const int set_size_;
  NameTable& names_;

  std::unordered_map<uint32_t, std::unique_ptr<Entry>> entries_;  // by name: those that are open or cached
  std::unordered_map<uint32_t, std::unique_ptr<Group>> groups_;   // by name: those that have open entries
  LinkedList<Entry, &Entry::open_link> open_;
  std::vector<Peer> peers_;

  std::unordered_map<uint32_t, Entry*> by_cache_id_;
  LinkedList<Entry, &Entry::use_link> by_use_;
  uint32_t last_cache_id_ = 0;
  std::unordered_map<uint32_t, Retired> retired_;
  std::deque<std::pair<uint64_t, uint32_t>> retired_order_;  // the list that evicted, the id

  MemberSet gone_;   // members that have left
  Status gone_why_;  // of the first of them
  MemberSet joined_;
  int last_joined_ = -1;
  Time joined_since_;

  std::vector<Entry*> completed_;  // by what is being heard
  std::vector<Entry*> ready_;      // in the order in which they will be decided
  std::vector<Entry*> decided_;    // by the close that is being made
  size_t ready_bytes_ = 0;
  Time first_ready_;
  bool ready_urgent_ = false;
  bool close_now_ = false;  // a failure waits for no company
  Bursts bursts_;
  std::vector<BurstPlace*> places_;
  bool last_close_can_grow_ = false;  // nobody waited for it, and it was not full
  uint64_t close_count_ = 0;
  uint64_t number_ = 0;
  Time last_close_at_;

  std::vector<std::unique_ptr<ListMessage>> closed_;
  size_t closed_head_ = 0;
  std::vector<std::unique_ptr<ListMessage>> spare_;
  std::vector<std::string> warnings_;
  uint64_t warning_count_ = 0;
  Time warned_at_;
};

}  // namespace halay::negotiate
