// The command line of `halay run`: all of horovodrun's flags, the config file, and what they make of a job.
// Thread: any (values).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/job.h"

namespace halay::program {

struct RunOptions {
  int32_t process_count = 0;
  bool process_count_given = false;
  bool check_build = false;
  bool version = false;
  std::string help;  // asked for: print it
  bool verbose = false;
  bool prefix_timestamp = false;
  std::string output_folder;
  std::string hosts, hostfile;
  std::vector<std::string> settings;  // "HALAY_CYCLE_TIME=5", in the order in which they win
  std::vector<std::string> notes;     // a line for each flag that has no effect (yet)
  std::vector<std::string> command;
};

// `arguments` without the program's name and "run". invalid_argument: an unknown flag (with the nearest one), a bad
// value (with the flag, the value and what is allowed).
Result<RunOptions> parse_run_options(std::vector<std::string> arguments);

// The job on this machine. `environment` is what the workers inherit; a setting in it that cannot be understood is
// answered before anything starts.
Result<launch::JobSpec> make_job(RunOptions& options, std::vector<std::string> environment);

}  // namespace halay::program
