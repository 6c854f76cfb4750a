// What the ranks of a simulated world do: which operations each submits, in which order, and how each must end.
// Everything follows from a seed.
// Thread: any (values).
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "control/set_control.h"
#include "types/request.h"

namespace halay::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  // From `low` to `high`, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<size_t>(between(0, static_cast<int64_t>(i) - 1))]);
  }
  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(between(0, static_cast<int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

// One operation of one process set. Names are texts here: each rank numbers them itself.
struct Operation {
  std::string name;
  std::string group;              // empty: none
  std::vector<Request> requests;  // by member, without name and group
  std::vector<bool> asks;         // by member
  std::vector<bool> takes_part;   // by member: those that are not skipped
  Code expected = Code::ok;
};

struct Action {
  std::vector<size_t> operations;  // submitted at once; empty: this rank joins
  int64_t not_before_ms = 0;
};

struct SetProgram {
  std::vector<int32_t> ranks;
  std::vector<Operation> operations;
  std::vector<std::vector<Action>> actions;  // by member
  std::vector<int> last_joined;              // of each join, where only one member can be it; else -1
};

struct Program {
  uint64_t seed = 0;
  int world_size = 1;
  control::Limits limits;
  std::vector<SetProgram> sets;
  int silent_rank = -1;  // its messages are lost from silent_from_ms on
  int64_t silent_from_ms = 0;
  int leaving_rank = -1;  // says goodbye at leaving_at_us, whatever the others still want of it
  int64_t leaving_at_us = 0;
  int64_t delay_us_most = 1000;  // of a message
  int64_t pause_us_most = 1000;  // between actions of a rank
};

Program make_program(uint64_t seed);

}  // namespace halay::sim
