#include "launch/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/text.h"

namespace halay::launch {
namespace {

sigset_t answered() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) ::sigaddset(&set, number);
  return set;
}

constexpr std::pair<int, const char*> kNames[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"},
    {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},
    {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};

}  // namespace

void block_signals() {
  const sigset_t set = answered();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int wait_signal() {
  const sigset_t set = answered();
  while (true) {
    const int number = ::sigwaitinfo(&set, nullptr);
    if (number > 0) return number;
  }
}

UniqueFd signal_descriptor() {
  const sigset_t set = answered();
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int next_signal(int descriptor) {
  signalfd_siginfo info;
  while (true) {
    const ssize_t count = ::read(descriptor, &info, sizeof info);
    if (count == sizeof info) return static_cast<int>(info.ssi_signo);
    if (count < 0 && errno == EINTR) continue;
    return 0;
  }
}

std::string signal_name(int number) {
  for (const auto& [known, name] : kNames) {
    if (known == number) return name;
  }
  return text("signal ", number);
}

}  // namespace halay::launch
