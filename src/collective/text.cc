#include "base/text.h"

#include "collective/plan.h"

namespace halay::collective {
namespace {

// "input[0, 8)", "window of 2 [0, 8)"
std::string text_of(const Region& region) {
  const size_t end = region.offset_elems + region.count_elems;
  if (region.buffer != Buffer::window) return text(region.buffer, '[', region.offset_elems, ", ", end, ')');
  return text("window of ", region.member, " [", region.offset_elems, ", ", end, ')');
}

std::string text_of(const Step& step, const Schedule& schedule) {
  switch (step.kind) {
    case StepKind::post_send:
      return text(text_of(step.src), " to ", step.peer);
    case StepKind::post_recv:
      return text(text_of(step.dst), " from ", step.peer);
    case StepKind::wait_send:
    case StepKind::wait_recv:
      return text("step ", step.index);
    case StepKind::copy:
    case StepKind::load:
    case StepKind::finish:
      return text(text_of(step.dst), " = ", text_of(step.src));
    case StepKind::reduce:
      return text(text_of(step.dst), " = ", text_of(step.src), " op ", text_of(step.src2));
    case StepKind::signal:
      return text("flag ", step.index, " = base + ", step.value);
    case StepKind::wait_flag:
      return text("flag ", step.index, " of ", step.peer, " >= base + ", step.value);
    case StepKind::reduce_all: {
      std::string line = text(text_of(step.dst), " = all of");
      for (uint32_t i = 0; i < step.source_count; ++i) {
        line += text(i == 0 ? " " : ", ", text_of(schedule.sources[step.first_source + i]));
      }
      return line;
    }
  }
  return {};
}

}  // namespace

std::string text_of(const Schedule& schedule) {
  std::string lines = text(schedule.algorithm, ": ", schedule.steps.size(), " steps, ", schedule.rounds, " rounds, ",
                           schedule.sent_bytes, " bytes sent, staging ", schedule.staging_elems, ", acc ",
                           schedule.acc_is_output ? std::string("is output") : text(schedule.acc_elems), '\n');
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    lines += text("  ", i, ' ', step.kind, ' ', text_of(step, schedule), '\n');
  }
  return lines;
}

}  // namespace halay::collective
