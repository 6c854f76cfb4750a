#include "program/python_packages.h"

#include <signal.h>
#include <sys/wait.h>

#include <sstream>

#include "base/clock.h"
#include "launch/spawn.h"
#include "net/connect.h"

namespace halay::program {
namespace {

constexpr int64_t kAnswerMs = 20'000;

// importlib.metadata looks at folders; no framework is imported.
constexpr const char* kQuestion =
    "import sys\n"
    "print('interpreter', sys.executable)\n"
    "print('version', sys.version.split()[0])\n"
    "from importlib.metadata import version, PackageNotFoundError\n"
    "for name in ('halay', 'halay-horovod', 'torch', 'tensorflow', 'tensorflow-cpu', 'keras', 'jax', 'mxnet', "
    "'numpy'):\n"
    "    try:\n"
    "        print(name, version(name))\n"
    "    except PackageNotFoundError:\n"
    "        pass\n";

std::string read_until_end(int fd, Time deadline) {
  std::string out;
  char buffer[4096];
  while (net::wait_readable(fd, deadline)) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    out.append(buffer, static_cast<size_t>(count));
  }
  return out;
}

}  // namespace

PythonPackages parse_python_packages(const std::string& answer) {
  PythonPackages found;
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    const std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name == "interpreter") {
      found.interpreter = value;
    } else if (name == "version") {
      found.version = value;
    } else {
      found.packages[name] = value;
    }
  }
  return found;
}

std::optional<PythonPackages> find_python_packages(const std::vector<std::string>& environment) {
  int ignored = 0;
  const auto python = launch::find_program("python3", environment, &ignored);
  if (!python.ok()) return std::nullopt;
  const auto worker = launch::spawn(python.value(), {"python3", "-c", kQuestion}, environment);
  if (!worker.ok()) return std::nullopt;
  PythonPackages found =
      parse_python_packages(read_until_end(worker.value().output.get(), system_clock().now().plus_ms(kAnswerMs)));
  ::kill(-worker.value().pid, SIGKILL);
  ::waitpid(worker.value().pid, nullptr, 0);
  if (found.version.empty()) return std::nullopt;
  return found;
}

}  // namespace halay::program
