#include "launch/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/text.h"
#include "base/unique_fd.h"

namespace halay::launch {
namespace {

// The parent of a process, from /proc/<pid>/stat: "12 (name, may hold anything) S 1 ...". 0: it has gone, or is a
// zombie.
pid_t parent_of(pid_t pid) {
  const UniqueFd file(::open(text("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[512];
  const ssize_t count = file ? ::read(file.get(), buffer, sizeof buffer - 1) : 0;
  if (count <= 0) return 0;
  buffer[count] = '\0';
  const char* after_name = std::strrchr(buffer, ')');
  if (after_name == nullptr || after_name[1] != ' ' || after_name[2] == 'Z') return 0;
  return static_cast<pid_t>(std::strtol(after_name + 3, nullptr, 10));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

void reap() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void send_all(const std::vector<pid_t>& pids, int number) {
  for (const pid_t pid : pids) {
    ::kill(pid, number);
    if (number == SIGTERM) ::kill(pid, SIGCONT);  // a stopped process hears nothing but KILL
  }
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0) children.emplace(parent_of(pid), pid);
  }
  std::vector<pid_t> found, next{::getpid()};
  while (!next.empty()) {
    const pid_t at = next.back();
    next.pop_back();
    const auto [begin, end] = children.equal_range(at);
    for (auto child = begin; child != end; ++child) {
      found.push_back(child->second);
      next.push_back(child->second);
    }
  }
  return found;
}

void end_descendants(int64_t grace_ms) {
  const Time begun = system_clock().now();
  const Time kill_at = begun.plus_ms(grace_ms), give_up_at = kill_at.plus_ms(1'000);
  bool asked = false;
  while (true) {
    reap();
    const std::vector<pid_t> left = descendants();
    const Time now = system_clock().now();
    if (left.empty() || now >= give_up_at) return;
    if (now >= kill_at) {
      send_all(left, SIGKILL);
    } else if (!asked) {
      send_all(left, SIGTERM);
      asked = true;
    }
    // Not all of them are children yet, so there is no event to wait for.
    ::poll(nullptr, 0, 10);
  }
}

}  // namespace halay::launch
