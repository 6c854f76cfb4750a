// What members of a process set tell each other to agree on an order. wire gives them bytes, negotiate makes and reads
// them. Thread: any (values).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "types/decision.h"
#include "types/request.h"

namespace halay {

// "The same as last time": the number of a cached Decision, and how often this member has asked under it before.
struct Repeat {
  uint32_t cache_id = 0;
  uint32_t generation = 0;
  bool operator==(const Repeat&) const = default;
};

// A member to the decider: what it asks for since its last one.
struct Announcement {
  uint64_t applied = 0;  // the last list that this member has applied
  bool urgent = false;   // a thread waits for something that this member has asked for
  bool joined = false;   // after these requests this member has no more data
  std::vector<Repeat> repeats;
  std::vector<Request> requests;  // new or changed ones, in full
};

enum class ListItemKind : uint8_t {
  repeat = 0,  // value: cache id of a Decision that all members hold
  fresh = 1,   // value: index into `fresh`; its cache_id may be new, or one whose content it replaces
  failed = 2,  // value: index into `fresh`
  evict = 3,   // value: cache id, which is never used again
  join = 4,    // value: the member that joined last
};

struct ListItem {
  ListItemKind kind = ListItemKind::repeat;
  uint32_t value = 0;
  bool operator==(const ListItem&) const = default;
};

struct FreshDecision {
  Decision decision;       // for ShapeRule::rows, dim 0 of the shape is 0: each member knows its own
  std::vector<int> asked;  // of a failed one: the members that it answers, ascending
};

// The decider to all members: the next numbered list.
struct ListMessage {
  uint64_t number = 0;
  size_t fusion_bytes = 0;
  std::vector<int> joined;  // members that are skipped, ascending
  std::vector<ListItem> items;
  std::vector<FreshDecision> fresh;

  // Keeps the memory, so that the next list needs none.
  void clear() {
    number = 0;
    fusion_bytes = 0;
    joined.clear();
    items.clear();
    fresh.clear();
  }
};

}  // namespace halay
