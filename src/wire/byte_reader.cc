#include "wire/byte_reader.h"

#include <bit>

#include "base/text.h"

namespace halay::wire {

uint8_t ByteReader::u8() {
  if (failed()) return 0;
  if (left() == 0) {
    fail("it ends too early");
    return 0;
  }
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ByteReader::varint(uint64_t max) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = u8();
    if (failed()) return 0;
    const uint64_t bits = byte & 0x7f;
    if ((shift == 63 && bits > 1) || (byte == 0 && shift > 0)) break;
    value |= bits << shift;
    if (byte & 0x80) continue;
    if (value <= max) return value;
    fail("a number is out of range");
    return 0;
  }
  fail("a number has no valid form");
  return 0;
}

double ByteReader::f64() {
  uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 8) bits |= static_cast<uint64_t>(u8()) << shift;
  return failed() ? 0.0 : std::bit_cast<double>(bits);
}

std::string_view ByteReader::text() {
  const size_t size = count();
  if (failed()) return {};
  const std::string_view value(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
  at_ += size;
  return value;
}

size_t ByteReader::count(size_t bytes_each) {
  const uint64_t value = varint();
  if (failed()) return 0;
  if (value <= left() / bytes_each) return static_cast<size_t>(value);
  fail("a count is larger than the rest of the message");
  return 0;
}

void ByteReader::fail(const char* what) {
  if (failed()) return;
  failure_ = what;
  failed_at_ = at_;
}

Status ByteReader::finish(std::string_view message) {
  if (!failed() && left() > 0) fail("it goes on after its end");
  if (!failed()) return {};
  return Status::internal(halay::text(message, " of ", bytes_.size(), " bytes cannot be read: ",
                                      std::string_view(failure_), " (byte ", failed_at_, ")"));
}

}  // namespace halay::wire
