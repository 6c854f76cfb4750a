// Starting one worker process: its own session and process group, output into pipes, death if the launcher dies.
// Thread: the launcher's main thread (a worker dies with the thread that started it).   Owns: the pipes' reading ends.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::launch {

// The file that `name` means: a path, or found on PATH of `environment`. The failure says what to do; `exit_code`
// becomes 127 (not there) or 126 (cannot be run).
Result<std::string> find_program(const std::string& name, std::span<const std::string> environment, int* exit_code);

// Lets this process have as many open files as it may (four for each rank); workers get the limit that was in force
// before.
void allow_many_files();

struct Worker {
  pid_t pid = -1;
  UniqueFd output, error;  // non-blocking
};

// Standard input is /dev/null. Not ok: the process could not be made, or the program not be run.
Result<Worker> spawn(const std::string& program, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment);

}  // namespace halay::launch
