// Appends numbers and texts to a message: little-endian, whole numbers as LEB128 (7 bits a byte, low ones first).
// Thread: any.   Owns: nothing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halay::wire {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  void u8(uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void varint(uint64_t value) {
    while (value >= 0x80) {
      u8(static_cast<uint8_t>(value | 0x80));
      value >>= 7;
    }
    u8(static_cast<uint8_t>(value));
  }
  void f64(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) u8(static_cast<uint8_t>(bits >> shift));
  }
  void text(std::string_view value) {
    varint(value.size());
    const auto bytes = std::as_bytes(std::span(value.data(), value.size()));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }

 private:
  std::vector<std::byte>& out_;
};

}  // namespace halay::wire
