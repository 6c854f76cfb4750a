#include "execute/surroundings.h"

namespace halay::execute {
namespace {

// A lane with members on several machines is priced as its slowest links.
bool talks_by_tcp(transport::Fabric& fabric, const LaneSpec& spec) {
  const int32_t self = spec.ranks[static_cast<size_t>(spec.me)];
  for (const int32_t rank : spec.ranks) {
    if (fabric.machine_of(rank) != fabric.machine_of(self)) return true;
    transport::Channel* channel = fabric.channel(rank);
    if (channel != nullptr && channel->pipe().transport() == "tcp") return true;
  }
  return false;
}

}  // namespace

std::string_view demanded_algorithm(std::string_view demands, OpKind kind) {
  while (!demands.empty()) {
    const size_t comma = demands.find(',');
    const std::string_view entry = demands.substr(0, comma);
    demands = comma == std::string_view::npos ? std::string_view() : demands.substr(comma + 1);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos && kind == OpKind::allreduce && !entry.empty()) return entry;
    if (equals != std::string_view::npos && entry.substr(0, equals) == name_of(kind)) return entry.substr(equals + 1);
  }
  return {};
}

LaneSurroundings::LaneSurroundings(transport::Fabric& fabric, const LaneSpec& spec, const ExecutorOptions& options)
    : shared_memory_(!talks_by_tcp(fabric, spec)) {
  for (const bool windows : {false, true}) {
    for (size_t i = 0; i < kKinds; ++i) {
      collective::Surroundings& surroundings = by_kind_[windows ? 1 : 0][i];
      // Schedules use the two halves of the data areas in turn.
      surroundings.window_bytes = windows ? fabric.window_bytes() / 2 : 0;
      surroundings.inline_bytes = windows ? kTinyPayloadBytes : 0;
      surroundings.link = shared_memory_ ? collective::kShmLink : collective::kTcpLink;
      surroundings.force_algorithm = demanded_algorithm(options.force_allreduce_algorithm, static_cast<OpKind>(i));
      // On one machine the same bits come always, whether somebody has joined or not (rule 9), unless told otherwise.
      surroundings.reproducible = options.reproducible || (shared_memory_ && surroundings.force_algorithm.empty());
    }
  }
}

}  // namespace halay::execute
