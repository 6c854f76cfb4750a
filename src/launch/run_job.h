// Runs one job on this machine: starts the workers, passes on output and signals, and leaves nothing behind.
// Thread: the only thread of the process that calls.
#pragma once

#include "launch/job.h"

namespace halay::launch {

// Returns the exit code of the launcher: 0, or that of the first rank that failed (128+n if it died by signal n), or
// 128+n if the launcher itself was ended by signal n.
//
// Two processes do it, each the other's life insurance: this one (the guard) waits, passes signals on and, should the
// other be killed, ends whatever is left; the other (the supervisor, supervisor.h) does all the work and, should the
// guard be killed, ends the job.
int run_job(const JobSpec& job);

}  // namespace halay::launch
