// Small names for things that flow. A tensor name is a NameId, an operation of this process a Ticket.
// Thread: any (values).
#pragma once

#include <cstdint>

#include "base/name_id.h"

namespace halay {

// One submitted operation of this process: the index of its handle. 0 is none.
enum class Ticket : uint64_t { none = 0 };

// An index inside a process set (0 … p-1), as opposed to a rank of the world. Plain int, always called `member`.

}  // namespace halay
