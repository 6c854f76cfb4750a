#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/version.h"
#include "launch/job.h"
#include "launch/thread_budget.h"
#include "program/commands.h"
#include "program/findings.h"

namespace halay::program {
namespace {

Finding look_at_engines() {
  return {Health::well, "engines", "halay's own: shared memory, TCP (NCCL, MPI, UCX: later)", ""};
}

Finding look_at_threads(const std::vector<std::string>& environment) {
  const int32_t cores = launch::usable_cores();
  const launch::ThreadBudget budget = launch::thread_budget(cores, cores, environment);
  return {Health::well, "threads", budget.line.substr(budget.line.find(' ') + 1), ""};
}

}  // namespace

int doctor_command(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  if (!arguments.empty()) {
    const bool help = arguments.front() == "--help" || arguments.front() == "-h";
    std::fputs("Usage: halay doctor    (no options; exit code 1 if something has to be mended)\n",
               help ? stdout : stderr);
    return help ? 0 : launch::kExitUsage;
  }
  std::vector<Finding> findings{{Health::well, "halay", std::string(version()), ""}};
  const auto add = [&](std::vector<Finding> more) { std::ranges::move(more, std::back_inserter(findings)); };
  add({look_at_engines()});
  add(look_at_machine());
  add({look_at_threads(environment)});
  add(look_at_network(environment));
  add(look_at_python(environment));
  add(look_at_knobs(environment));
  const std::string report = shown(findings);
  std::fwrite(report.data(), 1, report.size(), stdout);
  const auto problems = std::ranges::count(findings, Health::problem, &Finding::health);
  const std::string verdict = problems == 0
                                  ? "All is well.\n"
                                  : text(problems, problems == 1 ? " thing has" : " things have", " to be mended.\n");
  std::fwrite(verdict.data(), 1, verdict.size(), stdout);
  return problems == 0 ? 0 : 1;
}

}  // namespace halay::program
