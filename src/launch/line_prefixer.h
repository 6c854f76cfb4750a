// LinePrefixer: turns the bytes of one output stream of one rank into whole lines with a prefix, so that ranks never
// mix inside a line. "\r" ends a line as "\n" does, so that progress bars move. Pure.
// Thread: one at a time.   Owns: the line that has no end yet.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace halay::launch {

// A line longer than this is cut into several, each with its prefix.
constexpr size_t kLineBytesMost = size_t{1} << 20;

class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}
  // Appends the lines that `bytes` complete to `out`. `stamp` stands before the prefix (may be empty).
  void feed(std::string_view bytes, std::string_view stamp, std::string& out);
  // The stream has ended: an unfinished line is given an end.
  void finish(std::string_view stamp, std::string& out);

 private:
  void emit(std::string_view line, std::string_view stamp, std::string& out);
  const std::string prefix_;
  std::string partial_;
};

}  // namespace halay::launch
