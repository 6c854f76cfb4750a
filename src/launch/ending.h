// Ending: how a job comes to its end: when workers are asked (TERM), when they are killed, and what is said about it.
// Thread: one at a time.   Owns: nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"

namespace halay::launch {

class Ending {
 public:
  // A rank ended with a wait status other than 0. The first one gives the job its exit code. The others get a moment to
  // see it themselves and say what they saw; then TERM, then KILL: within 5 s all have ended.
  void rank_failed(int32_t rank, pid_t pid, int wait_status, Time now);
  // The launcher got this signal: workers get it too, KILL if they still live after 4.5 s. A second one: KILL at once.
  void passed_on(int number, Time now, std::span<const pid_t> pids);
  // Nobody is left who waits for us.
  void guard_lost(Time now);

  // Does what is due. `pids`: -1 for those that have ended.
  void advance(Time now, std::span<const pid_t> pids);
  Time next_deadline() const;

  int exit_code() const { return exit_code_; }
  bool alone() const { return alone_; }
  // The last line of a job that failed; empty if it did not.
  const std::string& verdict() const { return verdict_; }

 private:
  void plan(Time term_at, Time kill_at);
  Time term_at_ = Time::never(), kill_at_ = Time::never();
  bool alone_ = false;
  int signal_ = 0;
  int exit_code_ = 0;
  std::string verdict_;
};

// Sends to the process group of each worker, and wakes stopped ones so that they hear it.
void signal_workers(std::span<const pid_t> pids, int number);

}  // namespace halay::launch
