// The supervisor of one job: workers, their output, the store, signals, and the end of it all. See run_job.h.
// Thread: its process's main thread.
#pragma once

#include "base/unique_fd.h"
#include "launch/job.h"

namespace halay::launch {

// `lifeline` becomes readable when the guard has died. Returns the launcher's exit code.
int supervise(const JobSpec& job, UniqueFd lifeline);

}  // namespace halay::launch
