#include "program/commands.h"

#include <cstdio>

#include "base/config.h"
#include "base/text.h"
#include "base/version.h"
#include "launch/run_job.h"
#include "program/run_options.h"

namespace halay::program {
namespace {

constexpr std::string_view kUsage =
    "Usage: halay COMMAND [arguments]\n"
    "\n"
    "  run -np N program [arguments]   starts the program in N processes and looks after them (halay run --help)\n"
    "  doctor                          shows what this machine has, what is missing, and what to do\n"
    "  --version                       shows the version\n";

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int refuse(std::string_view where, std::string_view text) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(where.size()), where.data(), static_cast<int>(text.size()),
               text.data());
  return launch::kExitUsage;
}

std::string version_line() { return text("halay ", version(), "\n"); }

}  // namespace

int run_program(std::vector<std::string> arguments, std::vector<std::string> environment) {
  if (arguments.empty()) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
    return launch::kExitUsage;
  }
  const std::string command = arguments.front();
  arguments.erase(arguments.begin());
  if (command == "run") return run_command(std::move(arguments), std::move(environment));
  if (command == "doctor") return doctor_command(arguments, environment);
  if (command == "--version" || command == "-v" || command == "version") {
    print(version_line());
    return 0;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    print(kUsage);
    return 0;
  }
  const std::vector<std::string> known{"run", "doctor", "--version", "--help"};
  const std::string nearest = nearest_name(command, known);
  return refuse("halay",
                text("unknown command '", command, "'; ",
                     nearest.empty() ? std::string("see halay --help") : text("did you mean halay ", nearest, "?")));
}

int run_command(std::vector<std::string> arguments, std::vector<std::string> environment) {
  Result<RunOptions> parsed = parse_run_options(std::move(arguments));
  if (!parsed.ok()) return refuse("halay run", parsed.status().text());
  RunOptions options = std::move(parsed).value();
  if (!options.help.empty()) {
    print(options.help);
    return 0;
  }
  if (options.version) {
    print(version_line());
    return 0;
  }
  if (options.check_build) {
    print(check_build_report(environment));
    return 0;
  }
  const Result<launch::JobSpec> job = make_job(options, std::move(environment));
  for (const std::string& note : options.notes) std::fprintf(stderr, "halay run: %s\n", note.c_str());
  if (!job.ok()) return refuse("halay run", job.status().text());
  return launch::run_job(job.value());
}

}  // namespace halay::program
