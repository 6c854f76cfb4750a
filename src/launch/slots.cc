#include "launch/slots.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text.h"
#include "net/address.h"
#include "net/interfaces.h"

namespace halay::launch {
namespace {

std::optional<int32_t> count_from(std::string_view digits) {
  int32_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1) return std::nullopt;
  return count;
}

// A host name or IPv4 address: letters, digits, dots, dashes, underscores.
bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

bool is_ipv6(std::string_view name) { return net::Address::parse(text("[", name, "]:0")).ok(); }

Result<Host> parse_host(std::string_view entry) {
  const Status wrong = Status::invalid_argument(
      text("host '", entry, "': want name:slots with at least one slot, as in a:2, 10.0.0.1:4 or [2001:db8::1]:2"));
  const size_t colon = entry.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  std::string_view name = entry.substr(0, colon);
  const std::optional<int32_t> slots = count_from(entry.substr(colon + 1));
  if (!slots) return wrong;
  if (name.starts_with('[') && name.ends_with(']')) {
    name = name.substr(1, name.size() - 2);
    if (!is_ipv6(name)) return wrong;
  } else if (!is_name(name)) {
    return wrong;
  }
  return Host{std::string(name), *slots};
}

std::string_view trim(std::string_view line) {
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front()))) line.remove_prefix(1);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.remove_suffix(1);
  return line;
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  for (size_t from = 0; from <= list.size();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    HALAY_TRY(Host host, parse_host(trim(list.substr(from, comma - from))));
    hosts.push_back(std::move(host));
    from = comma + 1;
  }
  return hosts;
}

Result<std::vector<Host>> parse_hostfile(std::string_view contents) {
  std::vector<Host> hosts;
  int line_number = 0;
  while (!contents.empty()) {
    const size_t end = std::min(contents.find('\n'), contents.size());
    std::string_view line = contents.substr(0, end);
    contents.remove_prefix(std::min(end + 1, contents.size()));
    ++line_number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t space = line.find_first_of(" \t");
    const std::string_view name = line.substr(0, space);
    const std::string_view rest = space == std::string_view::npos ? std::string_view() : trim(line.substr(space));
    const std::optional<int32_t> slots = rest.starts_with("slots=") ? count_from(rest.substr(6)) : std::nullopt;
    if (!slots || !(is_name(name) || is_ipv6(name))) {
      return Status::invalid_argument(text("hostfile, line ", line_number, ": '", line, "': want 'name slots=N'"));
    }
    hosts.push_back({std::string(name), *slots});
  }
  if (hosts.empty()) return Status::invalid_argument("hostfile: no host in it");
  return hosts;
}

Result<std::vector<Slot>> assign_slots(std::span<const Host> hosts, int32_t rank_count) {
  int64_t there_are = 0;
  for (const Host& host : hosts) there_are += host.slot_count;
  if (there_are < rank_count) {
    return Status::invalid_argument(text(rank_count, " processes asked for, ", there_are, " slots on ", hosts.size(),
                                         hosts.size() == 1 ? " host" : " hosts"));
  }
  std::vector<Slot> slots;
  std::map<int32_t, int32_t> hosts_with;  // local rank -> hosts that have it
  for (const Host& host : hosts) {
    const int32_t here = std::min(host.slot_count, rank_count - static_cast<int32_t>(slots.size()));
    for (int32_t local = 0; local < here; ++local) {
      const auto rank = static_cast<int32_t>(slots.size());
      slots.push_back({host.name, rank, rank_count, local, here, hosts_with[local]++, 0});
    }
  }
  for (Slot& slot : slots) slot.cross_size = hosts_with[slot.local_rank];
  return slots;
}

std::string own_hostname() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

bool is_this_machine(std::string_view name) {
  const std::string own = own_hostname();
  if (name == "localhost" || name == own || name == own.substr(0, own.find('.'))) return true;
  auto address = net::Address::parse(text(name, ":0"));
  if (!address.ok()) address = net::Address::parse(text("[", name, "]:0"));
  return address.ok() && net::is_local(address.value());
}

}  // namespace halay::launch
