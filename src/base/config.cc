#include "base/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"

extern "C" char** environ;

namespace halay {
namespace {

constexpr bool twin = true;  // the words of the table
constexpr bool own = false;

using Settings = std::map<std::string, std::string, std::less<>>;

std::string lower(std::string_view word) {
  std::string out(word);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// One knob being read: where it stands, and what to say if it cannot be understood.
struct Found {
  std::string variable;
  const std::string* value = nullptr;
};

Found find(const Settings& settings, std::string_view name, bool has_twin) {
  for (const std::string_view prefix : {"HALAY_", "HOROVOD_"}) {
    if (prefix == "HOROVOD_" && !has_twin) break;
    std::string variable = std::string(prefix) + std::string(name);
    if (const auto at = settings.find(variable); at != settings.end() && !at->second.empty()) {
      return {std::move(variable), &at->second};
    }
  }
  return {};
}

Status refuse(const Found& found, const std::string& allowed) {
  return Status::invalid_argument(text(found.variable, "='", *found.value, "': must be ", allowed));
}

template <typename T>
Status read_number(const Found& found, T& member, T least, T most, std::string_view what) {
  T value{};
  const char* end = found.value->data() + found.value->size();
  const auto [stopped, error] = std::from_chars(found.value->data(), end, value);
  if (error != std::errc() || stopped != end || !(value >= least && value <= most)) {
    return refuse(found, text(what, " from ", least, " to ", most));
  }
  member = value;
  return {};
}

Status read_flag(const Found& found, bool& member) {
  const std::string word = lower(*found.value);
  const std::array<std::string_view, 4> yes{"1", "true", "yes", "on"}, no{"0", "false", "no", "off"};
  if (std::ranges::find(yes, word) != yes.end()) {
    member = true;
  } else if (std::ranges::find(no, word) != no.end()) {
    member = false;
  } else {
    return refuse(found, "0 or 1 (true, false, yes, no, on, off)");
  }
  return {};
}

Status read_choice(const Found& found, std::string& member, std::string_view choices) {
  const std::string word = lower(*found.value);
  for (size_t from = 0; from <= choices.size();) {
    const size_t bar = std::min(choices.find('|', from), choices.size());
    if (choices.substr(from, bar - from) == word) {
      member = word;
      return {};
    }
    from = bar + 1;
  }
  std::string list(choices);
  for (size_t at = 0; (at = list.find('|', at)) != std::string::npos; at += 2) list.replace(at, 1, ", ");
  return refuse(found, text("one of ", list));
}

Status read_all(const Settings& settings, Config& config) {
#define HALAY_READ(name, is_twin, statement)                            \
  if (const Found found = find(settings, name, is_twin); found.value) { \
    HALAY_RETURN_IF_ERROR(statement);                                   \
  }
#define HALAY_INT(member, name, is_twin, initial, least, most, text_) \
  HALAY_READ(name, is_twin, (read_number<int64_t>(found, config.member, least, most, "a whole number")))
#define HALAY_REAL(member, name, is_twin, initial, least, most, text_) \
  HALAY_READ(name, is_twin, (read_number<double>(found, config.member, least, most, "a number")))
#define HALAY_FLAG(member, name, is_twin, initial, text_) HALAY_READ(name, is_twin, read_flag(found, config.member))
#define HALAY_TEXT(member, name, is_twin, initial, text_) \
  HALAY_READ(name, is_twin, (config.member = *found.value, Status()))
#define HALAY_CHOICE(member, name, is_twin, initial, choices, text_) \
  HALAY_READ(name, is_twin, read_choice(found, config.member, choices))
#define HALAY_LATER(name, is_twin, text_)
#include "base/config.def"
#undef HALAY_INT
#undef HALAY_REAL
#undef HALAY_FLAG
#undef HALAY_TEXT
#undef HALAY_CHOICE
#undef HALAY_LATER
#undef HALAY_READ
  return {};
}

void warn_of_unknown(const Settings& settings, std::vector<std::string>* warnings) {
  if (warnings == nullptr) return;
  std::vector<std::string> known;
  for (const KnobRow& row : knob_table()) known.push_back(text("HALAY_", row.name));
  for (const auto& [variable, value] : settings) {
    if (!variable.starts_with("HALAY_") || std::ranges::find(known, variable) != known.end()) continue;
    const std::string nearest = nearest_name(variable, known);
    warnings->push_back(text(variable, " is not a knob of halay and has no effect",
                             nearest.empty() ? std::string() : text("; did you mean ", nearest, "?")));
  }
}

void add_setting(std::string_view line, Settings& settings) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view variable = line.substr(0, equals);
  if (variable.starts_with("HALAY_") || variable.starts_with("HOROVOD_")) {
    settings[std::string(variable)] = std::string(line.substr(equals + 1));
  }
}

std::vector<std::string> process_environment() {
  std::vector<std::string> lines;
  for (char** line = environ; line != nullptr && *line != nullptr; ++line) lines.emplace_back(*line);
  return lines;
}

template <typename T>
std::string as_text(const T& value) {
  return text(value);
}
std::string as_text(bool value) { return value ? "1" : "0"; }

}  // namespace

int64_t Config::op_deadline_ms() const {
  const bool set = op_deadline_s != Config().op_deadline_s;
  const double seconds = !set && stall_shutdown_s > 0 ? stall_shutdown_s : op_deadline_s;
  return static_cast<int64_t>(seconds * 1000);
}

std::vector<KnobRow> knob_table() {
  return {
#define HALAY_INT(member, name, is_twin, initial, least, most, text_) \
  {name, "int", is_twin, as_text(int64_t{initial}), "", text_},
#define HALAY_REAL(member, name, is_twin, initial, least, most, text_) \
  {name, "real", is_twin, as_text(double{initial}), "", text_},
#define HALAY_FLAG(member, name, is_twin, initial, text_) {name, "flag", is_twin, as_text(bool{initial}), "", text_},
#define HALAY_TEXT(member, name, is_twin, initial, text_) {name, "text", is_twin, initial, "", text_},
#define HALAY_CHOICE(member, name, is_twin, initial, choices, text_) {name, "choice", is_twin, initial, choices, text_},
#define HALAY_LATER(name, is_twin, text_) {name, "later", is_twin, "", "", text_},
#include "base/config.def"
#undef HALAY_INT
#undef HALAY_REAL
#undef HALAY_FLAG
#undef HALAY_TEXT
#undef HALAY_CHOICE
#undef HALAY_LATER
  };
}

Result<Config> read_config_from(std::span<const std::string> environment, std::span<const std::string> settings,
                                std::vector<std::string>* warnings) {
  Settings merged;
  for (const std::string& line : environment) add_setting(line, merged);
  for (const std::string& line : settings) {
    if (line.find('=') == std::string::npos || !line.starts_with("HALAY_")) {
      return Status::invalid_argument(text("setting '", line, "' must read HALAY_NAME=value"));
    }
    add_setting(line, merged);
  }
  warn_of_unknown(merged, warnings);
  Config config;
  HALAY_RETURN_IF_ERROR(read_all(merged, config));
  return config;
}

Result<Config> read_config(std::span<const std::string> settings, std::vector<std::string>* warnings) {
  return read_config_from(process_environment(), settings, warnings);
}

std::vector<KnobSetting> settings_in_environment() {
  Settings settings;
  for (const std::string& line : process_environment()) add_setting(line, settings);
  std::vector<KnobSetting> out;
  for (auto& [variable, value] : settings) out.push_back({variable, value});
  return out;
}

Result<std::string> knob_value(const Config& config, std::string_view name) {
  if (name.starts_with("HALAY_")) name.remove_prefix(6);
#define HALAY_INT(member, row, is_twin, initial, least, most, text_) \
  if (name == row) return as_text(config.member);
#define HALAY_REAL(member, row, is_twin, initial, least, most, text_) \
  if (name == row) return as_text(config.member);
#define HALAY_FLAG(member, row, is_twin, initial, text_) \
  if (name == row) return as_text(config.member);
#define HALAY_TEXT(member, row, is_twin, initial, text_) \
  if (name == row) return as_text(config.member);
#define HALAY_CHOICE(member, row, is_twin, initial, choices, text_) \
  if (name == row) return as_text(config.member);
#define HALAY_LATER(row, is_twin, text_) \
  if (name == row) return std::string();
#include "base/config.def"
#undef HALAY_INT
#undef HALAY_REAL
#undef HALAY_FLAG
#undef HALAY_TEXT
#undef HALAY_CHOICE
#undef HALAY_LATER
  return Status::invalid_argument(text("there is no knob HALAY_", name));
}

std::string nearest_name(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t best_edits = word.size() / 3 + 1;  // farther than this is no help
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j < row.size(); ++j) {
        const size_t above = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1)});
        diagonal = above;
      }
    }
    if (row.back() < best_edits) {
      best_edits = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace halay
