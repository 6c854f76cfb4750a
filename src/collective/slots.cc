#include "collective/slots.h"

namespace halay::collective {

Slots::Slots(const Problem& problem, const Surroundings& surroundings) {
  const size_t bytes_each = bytes_of(problem.dtype);
  const size_t line = kLineBytes / bytes_each;
  elems = surroundings.window_bytes / bytes_each / kSlotCount;
  if (elems > line) elems -= elems % line;
  elems = std::min({elems, chunk_elems_of(surroundings, bytes_each), kSlotBytes / bytes_each});
}

double hand_over_seconds(const Problem& problem, const Surroundings& surroundings) {
  return surroundings.window_link.alpha * (1 + 0.25 * (problem.member_count - 2));
}

}  // namespace halay::collective
