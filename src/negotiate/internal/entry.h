// What the decider knows of one tensor, one group and one member.
// Thread: whoever holds the engine's token.   Owns: nothing but its values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "negotiate/bursts.h"
#include "negotiate/linked_list.h"
#include "negotiate/member_set.h"
#include "types/control_message.h"

namespace halay::negotiate {

struct Group;

struct Entry {
  explicit Entry(NameId of, int set_size) : name(of), asked(set_size) {}

  const NameId name;

  // What is agreed, while cache_id is not 0.
  uint32_t cache_id = 0;
  Decision agreed;
  size_t agreed_bytes = 0;
  std::vector<uint32_t> asks;  // by member: the generation of its next request
  BurstPlace place;
  uint64_t closed_in = 0;  // the close that decided it last
  Link<Entry> use_link;    // of cached ones, least recently used first

  // The round that is being asked for, while open.
  bool open = false;
  MemberSet asked;
  std::vector<std::pair<int, Request>> full;  // those that came in full
  Time first_asked;
  uint64_t earliest_applied = 0;  // the smallest list number that an asking member had applied
  bool urgent = false;
  Group* group = nullptr;
  Link<Entry> open_link;  // of open ones, oldest first

  // Once all have asked.
  bool complete = false;
  bool ready = false;                    // also its group is, or it failed
  std::vector<int> skipped;              // members that have joined and did not ask
  std::unique_ptr<FreshDecision> fresh;  // null: agreed holds again
  size_t bytes = 0;
};

struct Group {
  NameId name{};
  uint32_t size = 0;
  uint32_t complete_count = 0;
  std::vector<Entry*> entries;
};

struct Peer {
  uint64_t applied = 0;
  bool heard = false;
  NameId last_asked{};
  Time last_asked_at;
};

// An evicted cache number that somebody may still use.
struct Retired {
  Decision agreed;
  std::vector<uint32_t> asks;
};

}  // namespace halay::negotiate
