// HALAY_ASSERT: for our own mistakes, on in release too. Input from outside gets a Status instead.
#pragma once

namespace halay {
// Prints the place and ends the process: after a broken invariant no number can be trusted.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}  // namespace halay

#define HALAY_ASSERT(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::halay::assertion_failed(#condition, __FILE__, __LINE__))
