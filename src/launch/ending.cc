#include "launch/ending.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/text.h"
#include "launch/descendants.h"
#include "launch/job.h"
#include "launch/signals.h"

namespace halay::launch {
namespace {

// After a failure: survivors learn of it from the engine in under a second and say so; then they are asked, then
// killed.
constexpr int64_t kNoticeMs = 1'500, kKillMs = 4'000;
constexpr int64_t kSignalKillMs = 4'500;  // after a signal was passed on
constexpr int64_t kGuardLostKillMs = 3'000;

}  // namespace

void signal_workers(std::span<const pid_t> pids, int number) {
  for (const pid_t pid : pids) {
    if (pid <= 0) continue;
    ::kill(-pid, number);
    if (number != SIGKILL) ::kill(-pid, SIGCONT);
  }
}

void Ending::plan(Time term_at, Time kill_at) {
  term_at_ = std::min(term_at_, term_at);
  kill_at_ = std::min(kill_at_, kill_at);
}

void Ending::rank_failed(int32_t rank, pid_t pid, int wait_status, Time now) {
  if (exit_code_ != 0) return;
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    exit_code_ = kExitSignal + number;
    verdict_ = text("rank ", rank, " (pid ", pid, ") failed first: killed by ", signal_name(number), "; exit code ",
                    exit_code_);
  } else {
    exit_code_ = WEXITSTATUS(wait_status);
    verdict_ = text("rank ", rank, " (pid ", pid, ") failed first: exit code ", exit_code_);
  }
  plan(now.plus_ms(kNoticeMs), now.plus_ms(kKillMs));
}

void Ending::passed_on(int number, Time now, std::span<const pid_t> pids) {
  if (signal_ != 0) {
    plan(now, now);
    return;
  }
  signal_ = number;
  if (exit_code_ == 0) {
    exit_code_ = kExitSignal + number;
    verdict_ = text("ended by ", signal_name(number), "; exit code ", exit_code_);
  }
  signal_workers(pids, number);
  plan(Time::never(), now.plus_ms(kSignalKillMs));
}

void Ending::guard_lost(Time now) {
  alone_ = true;
  if (exit_code_ == 0) exit_code_ = kExitSignal + SIGKILL;
  if (verdict_.empty()) verdict_ = "the launcher was killed; the job has been ended";
  plan(now, now.plus_ms(kGuardLostKillMs));
}

void Ending::advance(Time now, std::span<const pid_t> pids) {
  if (term_at_ <= now) {
    term_at_ = Time::never();
    signal_workers(pids, SIGTERM);
  }
  if (kill_at_ <= now) {
    signal_workers(pids, SIGKILL);
    kill_at_ = now.plus_ms(100);  // until they have gone
  }
}

Time Ending::next_deadline() const { return std::min(term_at_, kill_at_); }

}  // namespace halay::launch
