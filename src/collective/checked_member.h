// What the checker keeps of each member and of what is between two. Private to this room.
// Thread: any (values).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/checked_windows.h"
#include "collective/symbolic.h"
#include "types/schedule.h"

namespace halay::collective {

enum class Transfer : uint8_t { unposted, posted, done, waited };

struct Pending {
  uint32_t post;
  bool is_send;
  Buffer memory;
  size_t begin, end;
};

struct Message {
  size_t operation;
  uint32_t post;
  std::vector<Value> values;
  bool wide;
  Clock clock;
  uint32_t chain;
};

struct Expected {
  size_t operation;
  uint32_t post;
};

struct Raised {
  uint64_t value;
  Clock clock;
};

struct Member {
  size_t operation = 0;
  size_t next_step = 0;
  bool entered = false;
  std::array<std::vector<Value>, 4> memory;  // by Buffer: input, output, staging, acc
  std::vector<Transfer> transfers;           // by step
  std::vector<Clock> received;               // by step, the sender's clock
  std::vector<uint32_t> chains;              // by step, for messages without elements
  std::vector<Pending> pending;
  uint32_t chain = 0;
  Clock clock;
  uint64_t base = 0;
  size_t windows_run = 0;
  size_t sent_bytes = 0;
};

}  // namespace halay::collective
