// What a worker process is told. Thread: any (values).
#pragma once

#include <string>
#include <vector>

#include "launch/job.h"
#include "launch/thread_budget.h"

namespace halay::launch {

struct Meeting {
  std::string store;    // HALAY_STORE
  std::string job_key;  // HALAY_JOB_KEY
};

// "NAME=value" entries, each name once: the launcher's own environment, then the thread budget, the flags, and who the
// worker is under both HALAY_ and HOROVOD_ names. What a surrounding job said of rank, store or key does not leak in.
std::vector<std::string> worker_environment(const JobSpec& job, const Slot& slot, const Meeting& meeting,
                                            const ThreadBudget& budget);

}  // namespace halay::launch
