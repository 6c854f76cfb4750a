// horovodrun's --config-file: YAML of sections with scalars, which is all that it ever holds.
// Thread: any (no state).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halay::program {

struct ConfigEntry {
  std::string section, key, value;  // "params", "cycle_time_ms", "5"
};

// invalid_argument names the line that is not "section:" or "  key: value".
Result<std::vector<ConfigEntry>> parse_config_file(std::string_view contents);

// The flags that mean the same, as they would stand on the command line. Unknown keys are ignored, as Horovod does.
Result<std::vector<std::string>> flags_from_config(const std::vector<ConfigEntry>& entries);

}  // namespace halay::program
