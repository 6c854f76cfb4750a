#include "launch/run_job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "launch/descendants.h"
#include "launch/signals.h"
#include "launch/supervisor.h"

namespace halay::launch {
namespace {

// Waits for the supervisor; signals meanwhile go to it.
int guard(pid_t supervisor) {
  while (true) {
    const int number = wait_signal();
    if (number != SIGCHLD) {
      ::kill(supervisor, number);
      continue;
    }
    int status = 0;
    if (::waitpid(supervisor, &status, WNOHANG) != supervisor) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    end_descendants(0);
    std::fprintf(stderr, "halay run: the launcher's own process was killed by %s; the job has been ended\n",
                 signal_name(WTERMSIG(status)).c_str());
    return kExitSignal + WTERMSIG(status);
  }
}

}  // namespace

int run_job(const JobSpec& job) {
  int lifeline[2];
  if (::pipe2(lifeline, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "halay run: cannot make a pipe: %s\n", std::strerror(errno));
    return kExitInternal;
  }
  block_signals();
  adopt_orphans();
  const pid_t supervisor = ::fork();
  if (supervisor < 0) {
    std::fprintf(stderr, "halay run: cannot make a process: %s\n", std::strerror(errno));
    return kExitInternal;
  }
  if (supervisor == 0) {
    ::close(lifeline[1]);
    ::setsid();  // Ctrl-C reaches the guard alone, which passes it on once
    ::_exit(supervise(job, UniqueFd(lifeline[0])));
  }
  ::close(lifeline[0]);
  const int code = guard(supervisor);
  ::close(lifeline[1]);
  return code;
}

}  // namespace halay::launch
