#include "program/findings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/config.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "launch/slots.h"
#include "launch/thread_budget.h"
#include "net/interfaces.h"
#include "net/listener.h"
#include "program/python_packages.h"

namespace halay::program {
namespace {

constexpr size_t kProbeBytes = size_t{4} << 20;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// MemAvailable and MemTotal of /proc/meminfo, in bytes.
double memory_field(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size() + 1, nullptr) * 1024;
  }
  return 0;
}

Finding look_at_memory() {
  const double available = memory_field("MemAvailable"), total = memory_field("MemTotal");
  return {Health::well, "memory", text(size_text(available), " of ", size_text(total), " available"), ""};
}

double folder_bytes(const char* path) {
  struct statvfs place{};
  return ::statvfs(path, &place) == 0 ? static_cast<double>(place.f_bavail) * static_cast<double>(place.f_frsize) : 0;
}

// What the shared-memory transport does at its start: a sealed file of its own, memory in it, mapped.
Status try_memfd() {
  const UniqueFd file(::memfd_create("halay-doctor", MFD_CLOEXEC));
  if (!file) return Status::unsupported(text("memfd_create: ", std::strerror(errno)));
  const int failed = ::posix_fallocate(file.get(), 0, kProbeBytes);
  if (failed != 0) return Status::no_memory(text("memory for a memfd: ", std::strerror(failed)));
  void* mapped = ::mmap(nullptr, kProbeBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return Status::no_memory(text("mapping a memfd: ", std::strerror(errno)));
  ::munmap(mapped, kProbeBytes);
  return {};
}

Finding look_at_shared_memory() {
  const Status memfd = try_memfd();
  const double bytes = folder_bytes("/dev/shm");
  const std::string size = text("/dev/shm has ", size_text(bytes), " free");
  if (memfd.ok()) return {Health::well, "shared memory", text("memfd works; ", size, " (not needed)"), ""};
  if (bytes >= 64.0 * 1024 * 1024) {
    return {Health::note, "shared memory", text("no memfd (", memfd.text(), "); ", size, ", used instead"), ""};
  }
  return {Health::problem, "shared memory", text("no memfd (", memfd.text(), ") and ", size),
          "give the container a larger /dev/shm (docker run --shm-size=1g), or use HALAY_TRANSPORT=tcp"};
}

std::string limit_text(rlim_t value, bool bytes) {
  if (value == RLIM_INFINITY) return "unlimited";
  return bytes ? size_text(static_cast<double>(value)) : text(value);
}

Finding look_at_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding{Health::well, "open files",
                  text(limit_text(limit.rlim_cur, false), " allowed, ", limit_text(limit.rlim_max, false), " at most"),
                  ""};
  if (limit.rlim_cur < 256) {
    finding.health = Health::problem;
    finding.advice = "raise it: ulimit -n 4096";
  }
  return finding;
}

Finding look_at_locked_memory() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return {Health::well, "locked memory",
          text(limit_text(limit.rlim_cur, true), " allowed (matters for RDMA and GPUs only)"), ""};
}

Finding look_at_huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  const size_t from = line.find('['), to = line.find(']');
  if (from == std::string::npos || to == std::string::npos)
    return {Health::well, "huge pages", "none for shared memory in this kernel", ""};
  const std::string mode = line.substr(from + 1, to - from - 1);
  const bool on = mode == "always" || mode == "advise" || mode == "within_size" || mode == "force";
  Finding finding{Health::well, "huge pages", text("shared memory: ", mode), ""};
  if (!on) {
    finding.health = Health::note;
    finding.advice =
        "large tensors may gain: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled (as root)";
  }
  return finding;
}

}  // namespace

std::string size_text(double bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return buffer;
}

std::vector<Finding> look_at_machine() {
  utsname names{};
  ::uname(&names);
  const int32_t cores = launch::usable_cores();
  std::vector<Finding> findings;
  findings.push_back({Health::well, "system", text(names.sysname, " ", names.release, ", ", names.machine), ""});
  findings.push_back({Health::well, "cpu", text(cores, " usable of ", ::sysconf(_SC_NPROCESSORS_ONLN), " cores"), ""});
  findings.push_back(look_at_memory());
  findings.push_back(look_at_shared_memory());
  findings.push_back(look_at_files());
  findings.push_back(look_at_locked_memory());
  findings.push_back(look_at_huge_pages());
  return findings;
}

std::vector<Finding> look_at_network(const std::vector<std::string>& environment) {
  std::vector<Finding> findings;
  const char* only = launch::value_in(environment, "HALAY_NETWORK_INTERFACES");
  const auto addresses = net::local_addresses(only != nullptr ? only : "");
  if (!addresses.ok()) {
    return {{Health::problem, "network", addresses.status().text(), "correct HALAY_NETWORK_INTERFACES"}};
  }
  for (const net::InterfaceAddress& at : addresses.value()) {
    const std::string shown_address = at.address.text();
    findings.push_back(
        {Health::well, "network", text(at.interface, " ", shown_address.substr(0, shown_address.rfind(':'))), ""});
  }
  if (findings.empty()) {
    findings.push_back({Health::problem, "network", "no interface with an address, not even loopback",
                        "bring loopback up: ip link set lo up"});
  } else if (const auto listener = net::Listener::open_all(); !listener.ok()) {
    findings.push_back({Health::problem, "network", listener.status().text(), "HALAY_TRANSPORT=shm works without TCP"});
  }
  return findings;
}

std::vector<Finding> look_at_python(const std::vector<std::string>& environment) {
  const auto python = find_python_packages(environment);
  if (!python)
    return {{Health::note, "python", "no python3 on PATH answers", "activate the environment that has your framework"}};
  std::vector<Finding> findings{{Health::well, "python", text(python->version, " at ", python->interpreter), ""}};
  std::string found;
  for (const auto& [name, version] : python->packages) found += text(found.empty() ? "" : ", ", name, " ", version);
  findings.push_back({Health::well, "packages", found.empty() ? "none that halay knows" : found, ""});
  if (!python->has("halay")) {
    findings.push_back(
        {Health::note, "packages", "this python has no halay", text(python->interpreter, " -m pip install halay")});
  }
  if (!python->has("torch") && !python->has("numpy")) {
    findings.push_back({Health::note, "packages",
                        "neither torch nor numpy is installed: halay has adapters for these two",
                        text(python->interpreter, " -m pip install torch")});
  }
  return findings;
}

std::vector<Finding> look_at_knobs(const std::vector<std::string>& environment) {
  std::vector<Finding> findings;
  for (const std::string& entry : environment) {
    const bool ours = entry.starts_with("HALAY_") || entry.starts_with("HOROVOD_");
    const bool secret = entry.starts_with("HALAY_JOB_KEY=");
    if (ours) findings.push_back({Health::well, "setting", secret ? "HALAY_JOB_KEY=(hidden)" : entry, ""});
  }
  std::vector<std::string> warnings;
  const auto config = read_config_from(environment, {}, &warnings);
  for (const std::string& warning : warnings) findings.push_back({Health::note, "setting", warning, ""});
  if (!config.ok()) findings.push_back({Health::problem, "setting", config.status().text(), "correct or unset it"});
  if (findings.empty()) findings.push_back({Health::well, "settings", "none in the environment: all defaults", ""});
  return findings;
}

std::string shown(const std::vector<Finding>& findings) {
  std::string out;
  for (const Finding& finding : findings) {
    const char* mark = finding.health == Health::well ? "ok  " : finding.health == Health::note ? "note" : "BAD ";
    out += text(mark, "  ", finding.topic, ": ", finding.text, "\n");
    if (!finding.advice.empty()) out += text("      -> ", finding.advice, "\n");
  }
  return out;
}

}  // namespace halay::program
