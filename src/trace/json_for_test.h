// A strict JSON reader, small enough to trust, for the tests of what trace writes.
// Thread: any (no state).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halay::trace::json {

struct Value {
  enum class Type { null, boolean, number, string, array, object } type = Type::null;
  double number = 0;
  std::string string;
  std::vector<Value> items;
  std::vector<std::string> keys;  // of an object; items has the values

  const Value& operator[](std::string_view key) const {
    static const Value kNone;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) return items[i];
    }
    return kNone;
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  // Nothing if it is not exactly one JSON value.
  std::optional<Value> all() {
    Value value;
    if (!read(value)) return std::nullopt;
    skip_space();
    if (at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  bool more() const { return at_ < text_.size(); }
  void skip_space() {
    while (more() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool read(Value& out) {
    skip_space();
    if (!more()) return false;
    const char c = text_[at_];
    if (c == '{') return read_object(out);
    if (c == '[') return read_array(out);
    if (c == '"') {
      out.type = Value::Type::string;
      return read_string(out.string);
    }
    if (take("null")) return true;
    if (take("true") || take("false")) {
      out.type = Value::Type::boolean;
      return true;
    }
    return read_number(out);
  }
  bool read_object(Value& out) {
    out.type = Value::Type::object;
    ++at_;
    skip_space();
    if (take("}")) return true;
    for (;;) {
      skip_space();
      if (!more() || text_[at_] != '"' || !read_string(out.keys.emplace_back())) return false;
      skip_space();
      if (!take(":") || !read(out.items.emplace_back())) return false;
      skip_space();
      if (take("}")) return true;
      if (!take(",")) return false;
    }
  }
  bool read_array(Value& out) {
    out.type = Value::Type::array;
    ++at_;
    skip_space();
    if (take("]")) return true;
    for (;;) {
      if (!read(out.items.emplace_back())) return false;
      skip_space();
      if (take("]")) return true;
      if (!take(",")) return false;
    }
  }
  bool read_string(std::string& out) {
    ++at_;
    while (more()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (!more()) return false;
      const char escape = text_[at_++];
      if (escape == 'u') {
        const std::string_view digits = text_.substr(at_, 4);
        if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
          return false;
        at_ += 4;
        const long code = std::strtol(std::string(digits).c_str(), nullptr, 16);
        if (code < 0x80)
          out += static_cast<char>(code);
        else
          out += "?";
      } else if (escape == '"' || escape == '\\' || escape == '/') {
        out += escape;
      } else if (std::string_view("bfnrt").find(escape) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }
  bool read_number(Value& out) {
    const size_t begin = at_;
    if (more() && text_[at_] == '-') ++at_;
    const size_t digits = at_;
    while (more() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == digits || (text_[digits] == '0' && at_ > digits + 1)) return false;
    if (more() && text_[at_] == '.') {
      const size_t fraction = ++at_;
      while (more() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == fraction) return false;
    }
    out.type = Value::Type::number;
    out.number = std::strtod(std::string(text_.substr(begin, at_ - begin)).c_str(), nullptr);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

inline std::optional<Value> parse(std::string_view text) { return Reader(text).all(); }

// The whole file as it is now; empty if there is none.
inline std::string contents(const std::string& path) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char buffer[65536];
  ssize_t n = 0;
  while ((n = ::read(fd, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(n));
  ::close(fd);
  return out;
}

// Events of this name or phase.
inline size_t count(const Value& trace, std::string_view key, std::string_view value) {
  size_t out = 0;
  for (const Value& event : trace.items) out += event[key].string == value;
  return out;
}

}  // namespace halay::trace::json
