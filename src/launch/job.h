// One job as it was asked for. Thread: any (value).
#pragma once

#include <string>
#include <vector>

#include "launch/slots.h"

namespace halay::launch {

struct JobSpec {
  std::vector<std::string> command;      // program and arguments
  std::vector<Slot> slots;               // one a rank, all on this machine
  std::vector<std::string> environment;  // "NAME=value": what the launcher itself was given
  std::vector<std::string> settings;     // "NAME=value": what its flags say; wins
  std::string output_folder;             // empty: none
  bool prefix_timestamp = false;
  bool verbose = false;
};

// Exit codes of the launcher itself, as shells have them.
constexpr int kExitUsage = 2, kExitCannotRun = 126, kExitNotFound = 127, kExitSignal = 128, kExitInternal = 70;

}  // namespace halay::launch
