#include "launch/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "launch/job.h"
#include "launch/thread_budget.h"

namespace halay::launch {
namespace {

struct Pipe {
  UniqueFd reader, writer;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::no_memory(text("cannot make a pipe: ", std::strerror(errno)));
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& string : strings) out.push_back(const_cast<char*>(string.c_str()));
  out.push_back(nullptr);
  return out;
}

struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int input, output, error, report;
  pid_t parent;
  rlimit files;
};

// The limit of open files before allow_many_files().
const rlimit& files_before() {
  static const rlimit limit = [] {
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    return now;
  }();
  return limit;
}

// Between fork and exec: only what is safe after a fork of a process with threads.
[[noreturn]] void become(const ChildPlan& plan) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(kExitInternal);  // the launcher died before the line above
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setrlimit(RLIMIT_NOFILE, &plan.files);
  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.error, STDERR_FILENO);
  ::execve(plan.program, plan.arguments, plan.environment);
  const int failure = errno;
  [[maybe_unused]] const ssize_t told = ::write(plan.report, &failure, sizeof failure);
  ::_exit(kExitCannotRun);
}

bool is_program(const std::string& path) {
  struct stat what{};
  return ::stat(path.c_str(), &what) == 0 && S_ISREG(what.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

Status cannot_run(const std::string& name) {
  const bool python = name.ends_with(".py");
  return Status::invalid_argument(text("cannot run '", name, "': ", std::strerror(errno),
                                       python ? text("; did you mean: python3 ", name, "?") : std::string()));
}

}  // namespace

Result<std::string> find_program(const std::string& name, std::span<const std::string> environment, int* exit_code) {
  *exit_code = kExitNotFound;
  if (name.empty()) return Status::invalid_argument("no program to run: its name is empty");
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return name;
    struct stat what{};
    const bool there = ::stat(name.c_str(), &what) == 0;
    if (there) *exit_code = kExitCannotRun;
    if (there) errno = S_ISDIR(what.st_mode) ? EISDIR : EACCES;
    return cannot_run(name);
  }
  const char* found = value_in(environment, "PATH");
  const std::string_view path = found != nullptr ? found : "/usr/local/bin:/usr/bin:/bin";
  for (size_t from = 0; from <= path.size();) {
    const size_t colon = std::min(path.find(':', from), path.size());
    const std::string_view folder = path.substr(from, colon - from);
    std::string candidate = text(folder.empty() ? "." : folder, "/", name);
    if (is_program(candidate)) return candidate;
    from = colon + 1;
  }
  if (::access(name.c_str(), F_OK) == 0) {
    const std::string hint = name.ends_with(".py") ? text("python3 ", name) : text("./", name);
    return Status::invalid_argument(text("no program '", name, "' on PATH; did you mean: ", hint, "?"));
  }
  return Status::invalid_argument(text("no program '", name, "' on PATH"));
}

void allow_many_files() {
  rlimit limit = files_before();
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<Worker> spawn(const std::string& program, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment) {
  HALAY_TRY(Pipe output, make_pipe());
  HALAY_TRY(Pipe error, make_pipe());
  HALAY_TRY(Pipe report, make_pipe());
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char*> argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
  const ChildPlan plan{program.c_str(),     argument_pointers.data(), environment_pointers.data(), input.get(),
                       output.writer.get(), error.writer.get(),       report.writer.get(),         ::getpid(),
                       files_before()};
  const pid_t pid = ::fork();
  if (pid < 0) return Status::no_memory(text("cannot make a process: ", std::strerror(errno)));
  if (pid == 0) become(plan);

  report.writer.reset();
  int failure = 0;
  ssize_t told;
  while ((told = ::read(report.reader.get(), &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (told == sizeof failure) {
    ::waitpid(pid, nullptr, 0);
    const bool no_interpreter = failure == ENOEXEC || failure == ENOENT;
    return Status::invalid_argument(text("cannot run '", program, "': ", std::strerror(failure),
                                         no_interpreter ? "; is its first line a valid '#!'?" : ""));
  }
  for (const int fd : {output.reader.get(), error.reader.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return Worker{pid, std::move(output.reader), std::move(error.reader)};
}

}  // namespace halay::launch
