#include "base/text.h"
#include "collective/plan.h"

namespace halay::collective {
namespace {

// Whether the order of reducing can be seen in the bits.
bool order_matters(const Problem& problem) {
  return traits_of(problem.kind).reduces && kind_of(problem.dtype) == DTypeKind::floating;
}

bool windows_missing(const Algorithm& algorithm, const Surroundings& surroundings) {
  return algorithm.needs_windows && surroundings.window_bytes == 0;
}

bool order_forbids(const Algorithm& algorithm, const Problem& problem, const Surroundings& surroundings) {
  return surroundings.reproducible && !algorithm.canonical && order_matters(problem);
}

bool can(const Algorithm& algorithm, const Problem& problem, const Surroundings& surroundings) {
  return algorithm.kind == problem.kind && !windows_missing(algorithm, surroundings) &&
         !order_forbids(algorithm, problem, surroundings) && algorithm.fits(problem, surroundings);
}

Status none_of_that_name(const Problem& problem, const Surroundings& surroundings) {
  std::vector<std::string_view> fitting;
  bool exists = false;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != problem.kind) continue;
    exists = exists || algorithm.name == surroundings.force_algorithm;
    if (can(algorithm, problem, surroundings)) fitting.push_back(algorithm.name);
  }
  return Status::unsupported(text(name_of(problem.kind), ": there is no algorithm \"", surroundings.force_algorithm,
                                  exists ? "\" that can do this here" : "\"", "; those that can are ", fitting));
}

}  // namespace

Result<const Algorithm*> select(const Problem& problem, const Surroundings& surroundings) {
  const std::string& forced = surroundings.force_algorithm;
  const Algorithm* best = nullptr;
  double best_seconds = 0;
  bool exists = forced.empty();
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != problem.kind) continue;
    exists = exists || algorithm.name == forced;
    // With one member there is nothing to force.
    if (!forced.empty() && algorithm.name != forced && problem.member_count > 1) continue;
    if (!can(algorithm, problem, surroundings)) continue;
    const double seconds = algorithm.cost(problem, surroundings);
    if (best == nullptr || seconds < best_seconds) {
      best = &algorithm;
      best_seconds = seconds;
    }
  }
  if (best == nullptr || !exists) return none_of_that_name(problem, surroundings);
  return best;
}

std::string explain(const Problem& problem, const Surroundings& surroundings) {
  const Result<const Algorithm*> chosen = select(problem, surroundings);
  std::string lines;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.kind != problem.kind) continue;
    const bool is_chosen = chosen.ok() && chosen.value() == &algorithm;
    lines += text(is_chosen ? "* " : "  ", algorithm.name, ": ");
    if (windows_missing(algorithm, surroundings)) {
      lines += "needs windows, and there are none";
    } else if (order_forbids(algorithm, problem, surroundings)) {
      lines += "its order of adding depends on the element, and reproducible results are asked for";
    } else if (!algorithm.fits(problem, surroundings)) {
      lines += "does not fit this count or number of members";
    } else {
      lines += text(algorithm.cost(problem, surroundings) * 1e6, " us expected");
      if (!is_chosen && !surroundings.force_algorithm.empty())
        lines += text(", but ", surroundings.force_algorithm, " is forced");
    }
    lines += '\n';
  }
  if (!chosen.ok()) lines += text("  none: ", chosen.status().text(), '\n');
  return lines;
}

Result<Schedule> plan(const Problem& problem, const Surroundings& surroundings) {
  HALAY_TRY(const Algorithm* algorithm, select(problem, surroundings));
  return algorithm->plan(problem, surroundings);
}

}  // namespace halay::collective
