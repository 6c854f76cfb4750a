// The knobs of one engine, read once. The only reader of the environment in src/; the table is config.def.
// Thread: any (value).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halay {

struct Config {
#define HALAY_INT(member, name, twin, initial, least, most, text) int64_t member = initial;
#define HALAY_REAL(member, name, twin, initial, least, most, text) double member = initial;
#define HALAY_FLAG(member, name, twin, initial, text) bool member = initial;
#define HALAY_TEXT(member, name, twin, initial, text) std::string member = initial;
#define HALAY_CHOICE(member, name, twin, initial, choices, text) std::string member = initial;
#define HALAY_LATER(name, twin, text)
#include "base/config.def"
#undef HALAY_INT
#undef HALAY_REAL
#undef HALAY_FLAG
#undef HALAY_TEXT
#undef HALAY_CHOICE
#undef HALAY_LATER

  // The op deadline in force: OP_DEADLINE_SECONDS where set, else Horovod's shutdown time where set, else the default.
  int64_t op_deadline_ms() const;
};

// What a user set, and where: for `halay doctor`.
struct KnobSetting {
  std::string variable;  // "HALAY_CYCLE_TIME"
  std::string value;
};

// One row of the table, for documents, doctor and the launcher.
struct KnobRow {
  std::string_view name;  // without prefix
  std::string_view type;  // int, real, flag, text, choice, later
  bool twin;              // HOROVOD_<name> is read too
  std::string initial;
  std::string_view allowed;  // for choices
  std::string_view text;
};
std::vector<KnobRow> knob_table();

// Reads the environment; `settings` ("HALAY_NAME=value") win over it. invalid_argument names variable, value and what
// is allowed. `warnings` gets a line for each HALAY_ variable that no row knows, with the nearest name.
Result<Config> read_config(std::span<const std::string> settings = {}, std::vector<std::string>* warnings = nullptr);

// The same from a given environment ("NAME=value" each), for tests.
Result<Config> read_config_from(std::span<const std::string> environment, std::span<const std::string> settings,
                                std::vector<std::string>* warnings);

// The knobs set in this process's environment.
std::vector<KnobSetting> settings_in_environment();

// The value in force as text; invalid_argument for an unknown name (with or without the prefix HALAY_).
Result<std::string> knob_value(const Config& config, std::string_view name);

// The candidate with the fewest edits from `word`, or "" if none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

}  // namespace halay
