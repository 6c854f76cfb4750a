// Every process below this one, however it left its group or session: orphans come back to a child subreaper.
// Thread: any (no state).
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/clock.h"

namespace halay::launch {

// Orphaned grandchildren of this process become its children from now on.
void adopt_orphans();

std::vector<pid_t> descendants();

// Sends TERM to all of them, KILL after `grace_ms`, and waits for their end (a process stuck in the kernel: up to a
// second more).
void end_descendants(int64_t grace_ms);

}  // namespace halay::launch
