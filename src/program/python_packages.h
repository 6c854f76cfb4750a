// Which Python packages the python3 on PATH could import: read from their metadata, nothing is imported.
// Thread: the main thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace halay::program {

struct PythonPackages {
  std::string interpreter;                      // "/usr/bin/python3"
  std::string version;                          // "3.11.2"
  std::map<std::string, std::string> packages;  // name -> version, of those that halay knows
  bool has(const std::string& name) const { return packages.contains(name); }
};

// Nothing: no python3 on PATH, or it did not answer in time.
std::optional<PythonPackages> find_python_packages(const std::vector<std::string>& environment);

// The answer of the interpreter: lines "name version".
PythonPackages parse_python_packages(const std::string& answer);

}  // namespace halay::program
