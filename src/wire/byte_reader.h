// Reads what ByteWriter wrote, from bytes that may be anything. The first failure sticks: every later read gives zero,
// so that a parser checks once at its end. Never reads outside the span, never allocates by a number that it has not
// checked. Thread: any.   Owns: nothing; texts point into the span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace halay::wire {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint8_t u8();
  // At most `max`. A number that is longer than it needs to be is refused: each value has one form.
  uint64_t varint(uint64_t max = UINT64_MAX);
  double f64();
  std::string_view text();
  // A count of things that take at least `bytes_each` bytes of what is left.
  size_t count(size_t bytes_each = 1);

  bool failed() const { return failure_ != nullptr; }
  void fail(const char* what);
  size_t left() const { return bytes_.size() - at_; }
  // Ok if all was read and nothing failed; else says what was wrong, and where.
  Status finish(std::string_view message);

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  size_t failed_at_ = 0;
  const char* failure_ = nullptr;
};

}  // namespace halay::wire
