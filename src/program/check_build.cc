#include "base/text.h"
#include "base/version.h"
#include "program/commands.h"
#include "program/python_packages.h"

namespace halay::program {
namespace {

void row(std::string& out, bool there, std::string_view name) {
  out += text("    [", there ? "X" : " ", "] ", name, "\n");
}

}  // namespace

// A framework counts if halay has an adapter for it and the python3 on PATH has the framework.
std::string check_build_report(const std::vector<std::string>& environment) {
  const auto python = find_python_packages(environment);
  const auto has = [&](const char* name) { return python && python->has(name); };
  std::string out = text("halay v", version(), ":\n\nAvailable Frameworks:\n");
  row(out, false, "TensorFlow");
  row(out, has("torch"), "PyTorch");
  row(out, false, "MXNet");
  row(out, has("numpy"), "NumPy");
  out += "\nAvailable Controllers:\n";
  row(out, false, "MPI");
  row(out, false, "Gloo");
  row(out, true, "halay");
  out += "\nAvailable Tensor Operations:\n";
  for (const char* name : {"NCCL", "DDL", "CCL", "MPI", "Gloo"}) row(out, false, name);
  row(out, true, "halay (shared memory, TCP)");
  return out;
}

}  // namespace halay::program
