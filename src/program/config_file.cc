#include "program/config_file.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace halay::program {
namespace {

struct Row {
  std::string_view section, key;
  std::string_view flag;  // given `key: value`; a switch where `off` is not empty
  std::string_view off;   // the flag for false
};

constexpr Row kRows[] = {
    {"params", "cycle_time_ms", "--cycle-time-ms", ""},
    {"params", "fusion_threshold_mb", "--fusion-threshold-mb", ""},
    {"params", "cache_capacity", "--cache-capacity", ""},
    {"params", "hierarchical_allreduce", "--hierarchical-allreduce", "--no-hierarchical-allreduce"},
    {"params", "hierarchical_allgather", "--hierarchical-allgather", "--no-hierarchical-allgather"},
    {"params", "torus_allreduce", "--torus-allreduce", "--no-torus-allreduce"},
    {"autotune", "enabled", "--autotune", "--no-autotune"},
    {"autotune", "log_file", "--autotune-log-file", ""},
    {"autotune", "warmup_samples", "--autotune-warmup-samples", ""},
    {"autotune", "steps_per_sample", "--autotune-steps-per-sample", ""},
    {"autotune", "bayes_opt_max_samples", "--autotune-bayes-opt-max-samples", ""},
    {"autotune", "gaussian_process_noise", "--autotune-gaussian-process-noise", ""},
    {"timeline", "filename", "--timeline-filename", ""},
    {"timeline", "mark_cycles", "--timeline-mark-cycles", "--no-timeline-mark-cycles"},
    {"stall_check", "enabled", "--stall-check", "--no-stall-check"},
    {"stall_check", "warning_time_seconds", "--stall-check-warning-time-seconds", ""},
    {"stall_check", "shutdown_time_seconds", "--stall-check-shutdown-time-seconds", ""},
    {"library_options", "mpi_threads_disable", "--mpi-threads-disable", "--no-mpi-threads-disable"},
    {"library_options", "num_nccl_streams", "--num-nccl-streams", ""},
    {"library_options", "thread_affinity", "--thread-affinity", ""},
    {"library_options", "gloo_timeout_seconds", "--gloo-timeout-seconds", ""},
    {"logging", "level", "--log-level", ""},
    {"logging", "with_timestamp", "--log-with-timestamp", "--log-without-timestamp"},
};

std::string_view trim(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  return line;
}

// Cuts a comment, but not a # inside quotes or inside a word.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || std::isspace(static_cast<unsigned char>(line[i - 1])))) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::string_view unquoted(std::string_view value) {
  const bool quoted =
      value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

std::string lower(std::string_view word) {
  std::string out(word);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

Status add_controller(const ConfigEntry& entry, std::vector<std::string>& flags) {
  if (entry.value != "gloo" && entry.value != "mpi") {
    return Status::invalid_argument(text("config file: controller: '", entry.value, "': must be gloo or mpi"));
  }
  flags.push_back("--" + entry.value);
  return {};
}

Status add_flag(const Row& row, const ConfigEntry& entry, std::vector<std::string>& flags) {
  if (row.off.empty()) {
    flags.push_back(text(row.flag, "=", entry.value));
    return {};
  }
  const std::string word = lower(entry.value);
  const bool yes = word == "true" || word == "yes" || word == "on",
             no = word == "false" || word == "no" || word == "off";
  if (!yes && !no) {
    return Status::invalid_argument(
        text("config file: ", row.section, ": ", row.key, ": '", entry.value, "': must be true or false"));
  }
  flags.emplace_back(yes ? row.flag : row.off);
  return {};
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config_file(std::string_view contents) {
  std::vector<ConfigEntry> entries;
  std::string section;
  for (int number = 1; !contents.empty(); ++number) {
    const size_t end = std::min(contents.find('\n'), contents.size());
    const std::string_view raw = without_comment(contents.substr(0, end));
    contents.remove_prefix(std::min(end + 1, contents.size()));
    const std::string_view line = trim(raw);
    if (line.empty() || line == "---" || line == "...") continue;
    const bool indented = std::isspace(static_cast<unsigned char>(raw.front())) != 0;
    const size_t colon = line.find(':');
    const bool spaced = colon != std::string_view::npos && (colon + 1 == line.size() || line[colon + 1] == ' ');
    if (!spaced || colon == 0 || (indented && section.empty())) {
      return Status::invalid_argument(
          text("config file, line ", number, ": '", line, "': want 'section:' or '  key: value'"));
    }
    const std::string key(trim(line.substr(0, colon)));
    const std::string value(unquoted(trim(line.substr(colon + 1))));
    if (!indented) section = value.empty() ? key : std::string();
    if (!value.empty()) entries.push_back({indented ? section : std::string(), key, value});
  }
  return entries;
}

Result<std::vector<std::string>> flags_from_config(const std::vector<ConfigEntry>& entries) {
  std::vector<std::string> flags;
  for (const ConfigEntry& entry : entries) {
    if (entry.section.empty() && entry.key == "controller") HALAY_RETURN_IF_ERROR(add_controller(entry, flags));
    if (lower(entry.value) == "null" || entry.value == "~") continue;
    const auto row = std::ranges::find_if(
        kRows, [&](const Row& candidate) { return candidate.section == entry.section && candidate.key == entry.key; });
    if (row != std::end(kRows)) HALAY_RETURN_IF_ERROR(add_flag(*row, entry, flags));
  }
  return flags;
}

}  // namespace halay::program
