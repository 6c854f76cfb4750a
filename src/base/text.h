// Builds message texts from parts: text("rank ", 3, " sent ", n, " bytes"). For errors and logs, not for the hot path.
// Thread: any (no state).
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace halay {

std::string number_text(double value);  // the shortest text that reads back as the same value

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
template <std::same_as<bool> T>  // not for pointers, which would turn into bool
void append_text(std::string& out, T part) {
  out += part ? "true" : "false";
}
template <std::integral T>
  requires(!std::same_as<T, char> && !std::same_as<T, bool>)
void append_text(std::string& out, T part) {
  out += std::to_string(part);
}
template <std::floating_point T>
void append_text(std::string& out, T part) {
  out += number_text(static_cast<double>(part));
}
template <typename T>
  requires std::is_enum_v<T>
void append_text(std::string& out, T part) {
  out += name_of(part);
}
// A list reads "[0, 2, 3]".
template <typename T>
void append_text(std::string& out, const std::vector<T>& part) {
  out += '[';
  for (size_t i = 0; i < part.size(); ++i) {
    if (i) out += ", ";
    append_text(out, part[i]);
  }
  out += ']';
}

template <typename... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

}  // namespace halay
