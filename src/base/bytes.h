// ByteReader and ByteWriter: little-endian fields in a row of bytes. The reader checks every step against what is there
// and stays failed after the first lack, so that a parser reads all its fields and asks once. Thread: any (values).
// Owns: the writer its bytes; the reader borrows.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halay {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // 0 when there are too few bytes.
  template <std::unsigned_integral T>
  T number() {
    const std::span<const std::byte> field = bytes(sizeof(T));
    T value = 0;
    for (size_t i = 0; i < field.size(); ++i) value = static_cast<T>(value | (std::to_integer<T>(field[i]) << (8 * i)));
    return value;
  }
  // Empty when there are fewer than `count`.
  std::span<const std::byte> bytes(size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> field = rest_.first(count);
    rest_ = rest_.subspan(count);
    return field;
  }
  // A 32-bit length, at most `most`, and that many bytes.
  std::span<const std::byte> block(size_t most) {
    const auto length = number<uint32_t>();
    if (length > most) failed_ = true;
    return bytes(length);
  }

  bool failed() const { return failed_; }
  // Everything was there and nothing is left.
  bool complete() const { return !failed_ && rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
  bool failed_ = false;
};

class ByteWriter {
 public:
  template <std::unsigned_integral T>
  ByteWriter& number(T value) {
    std::byte field[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i) field[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
    return bytes(field);
  }
  ByteWriter& bytes(std::span<const std::byte> field) {
    for (const std::byte each : field) out_.push_back(each);  // insert() and resize() make g++ 12 see overflows at -O3
    return *this;
  }
  ByteWriter& block(std::span<const std::byte> field) {
    return number(static_cast<uint32_t>(field.size())).bytes(field);
  }

  std::span<const std::byte> view() const { return out_; }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

}  // namespace halay
