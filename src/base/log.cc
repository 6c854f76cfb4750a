#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/text.h"

namespace halay {
namespace {

// The one mutable global of base: what is shown belongs to the process, like standard error itself.
std::atomic<LogLevel> g_log_least{LogLevel::warning};
std::atomic<bool> g_log_hide_time{false};
std::atomic<int32_t> g_log_rank{-1};

constexpr std::string_view kLevels[] = {"trace", "debug", "info", "warning", "error", "fatal"};

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() % 1'000'000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02d %02d:%02d:%02d.%06d: ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(micros));
  return buffer;
}

}  // namespace

void set_log(LogLevel least, bool hide_time, int32_t rank) {
  g_log_least.store(least, std::memory_order_relaxed);
  g_log_hide_time.store(hide_time, std::memory_order_relaxed);
  g_log_rank.store(rank, std::memory_order_relaxed);
}

LogLevel log_level_from(std::string_view name) {
  for (size_t i = 0; i < std::size(kLevels); ++i) {
    if (kLevels[i] == name) return static_cast<LogLevel>(i);
  }
  return LogLevel::warning;
}

bool log_shows(LogLevel level) { return level >= g_log_least.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view message) {
  if (!log_shows(level)) return;
  std::string line = "[";
  if (!g_log_hide_time.load(std::memory_order_relaxed)) line += timestamp();
  line += static_cast<char>(kLevels[static_cast<size_t>(level)][0] - 'a' + 'A');
  const int32_t rank = g_log_rank.load(std::memory_order_relaxed);
  line += rank >= 0 ? text(" halay rank ", rank, "] ") : std::string(" halay] ");
  line += message;
  line += '\n';
  // One write: lines of several threads and ranks stay whole.
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

}  // namespace halay
