// One process set on this rank: who is in it, its control plane, and how far its building has come.
// Thread: whoever holds the token.   Owns: its SetControl.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/set_control.h"
#include "engine/operation.h"

namespace halay::engine {

struct ProcessSet {
  SetId id = 0;
  uint64_t lane = 0;           // the same number on all members
  std::vector<int32_t> ranks;  // ascending; the member index is the position here
  int me = 0;
  std::string label;  // "process set 1 (ranks [0, 2])", for texts
  std::unique_ptr<control::SetControl> control;
  bool touched = true;  // the control has something new to think about

  // Building: every member greets every other. It is done when all were heard and, with windows, all have arrived.
  std::atomic<bool> active{false};  // read by the thread that waits for it
  bool windows = false;             // as far as is heard: all members can
  std::vector<bool> heard;          // by member
  // Control messages of members that were done before this rank.
  std::vector<std::pair<int, std::vector<std::byte>>> early;

  int member_count() const { return static_cast<int>(ranks.size()); }
  // -1 if the rank is not a member.
  int member_of(int32_t rank) const {
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == rank) return static_cast<int>(i);
    }
    return -1;
  }
};

}  // namespace halay::engine
