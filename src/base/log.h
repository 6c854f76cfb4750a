// Messages to people, on standard error: one whole line at a time, so that ranks never mix inside one.
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace halay {

enum class LogLevel : uint8_t { trace, debug, info, warning, error, fatal };

// Shown from this level on; `rank` stands in each line (-1: not known yet).
void set_log(LogLevel least, bool hide_time, int32_t rank);
LogLevel log_level_from(std::string_view name);
bool log_shows(LogLevel level);
// [2026-12-01 12:00:01.000123: W rank 3] text
void log_line(LogLevel level, std::string_view message);

}  // namespace halay

// Builds the text only if the level is shown.
#define HALAY_LOG(level, ...)                                                  \
  do {                                                                         \
    if (::halay::log_shows(::halay::LogLevel::level)) {                        \
      ::halay::log_line(::halay::LogLevel::level, ::halay::text(__VA_ARGS__)); \
    }                                                                          \
  } while (false)
