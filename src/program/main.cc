// The `halay` command. Each subcommand is a file of its own.
#include <string>
#include <vector>

#include "program/commands.h"

int main(int argc, char** argv, char** environment) {
  std::vector<std::string> variables;
  for (char** entry = environment; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return halay::program::run_program({argv + 1, argv + argc}, std::move(variables));
}
