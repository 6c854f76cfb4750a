#include "base/clock.h"

#include <chrono>

namespace halay {
namespace {

class SystemClock final : public Clock {
 public:
  Time now() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
  }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace halay
