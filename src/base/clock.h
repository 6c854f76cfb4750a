// Time as a value: pure rooms get it as an argument, only the engine reads the clock.
// Thread: any (values).
#pragma once

#include <compare>
#include <cstdint>

namespace halay {

// Nanoseconds on the monotonic clock of this machine. kNever sorts after every real time.
struct Time {
  int64_t ns = 0;
  auto operator<=>(const Time&) const = default;
  static constexpr Time never() { return {INT64_MAX}; }
  constexpr Time plus_ms(int64_t ms) const {
    return ns > INT64_MAX - ms * 1'000'000 ? never() : Time{ns + ms * 1'000'000};
  }
  constexpr Time plus_us(int64_t us) const { return ns > INT64_MAX - us * 1'000 ? never() : Time{ns + us * 1'000}; }
};

// Seconds from `from` to `to`, for texts and reports.
inline double seconds_between(Time from, Time to) { return static_cast<double>(to.ns - from.ns) * 1e-9; }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

// The monotonic clock of the machine.
const Clock& system_clock();

}  // namespace halay
