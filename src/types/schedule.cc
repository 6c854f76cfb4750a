#include "types/schedule.h"

namespace halay {

std::string_view name_of(Buffer buffer) {
  constexpr std::string_view kNames[] = {"input", "output", "staging", "acc", "window"};
  return kNames[static_cast<size_t>(buffer)];
}

std::string_view name_of(StepKind kind) {
  constexpr std::string_view kNames[] = {"post_send", "wait_send", "post_recv",  "wait_recv", "copy",     "load",
                                         "reduce",    "finish",    "reduce_all", "signal",    "wait_flag"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace halay
