// Do the requests of all members for one tensor fit together, and what follows from them.
// Thread: any (no state).   Owns: nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/name_table.h"
#include "base/status.h"
#include "types/decision.h"
#include "types/request.h"

namespace halay::negotiate {

struct Asked {
  int member = 0;
  const Request* request = nullptr;
};

// What came for one tensor. `ranks`: the world ranks of all members. `skipped`: members that have joined and did not
// ask.
struct Round {
  std::span<const Asked> asked;  // ascending members, at least one
  std::span<const int> skipped;
  std::span<const int32_t> ranks;
};

// mismatch: the text names the tensor, the first two ranks that disagree, and both values.
Status validate(const Round& round, const NameTable& names);

// What all members do, from requests that validate() has passed. For ShapeRule::rows, dim 0 of the shape is 0.
Decision decide(const Round& round);

// What `member` asks for when it asks for `decision` again.
Request request_behind(const Decision& decision, int member, int set_size);

// Whether the request of `member` is one that `decision` (with this member's own dim 0) answers.
bool answers(const Decision& decision, const Request& request, int member, int set_size);

// Sets all that has no meaning for the kind to one value, and fills in equal splits where none are given.
void normalize(Request& request, int set_size);

// "rank 3", "ranks 1, 2", "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more".
std::string ranks_text(std::span<const int> members, std::span<const int32_t> ranks);

}  // namespace halay::negotiate
