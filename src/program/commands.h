// The subcommands of `halay`. Each returns the exit code. Thread: the main thread.
#pragma once

#include <string>
#include <vector>

namespace halay::program {

// `arguments` without the program's name; `environment` as "NAME=value" entries.
int run_program(std::vector<std::string> arguments, std::vector<std::string> environment);

int run_command(std::vector<std::string> arguments, std::vector<std::string> environment);
int doctor_command(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);

// What horovodrun --check-build prints, truthfully.
std::string check_build_report(const std::vector<std::string>& environment);

}  // namespace halay::program
