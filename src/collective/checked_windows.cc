#include "collective/checked_windows.h"

#include <algorithm>

#include "base/text.h"

namespace halay::collective {

void join(Clock& mine, const Clock& other) {
  for (size_t m = 0; m < mine.size(); ++m) mine[m] = std::max(mine[m], other[m]);
}

CheckedWindows::CheckedWindows(size_t member_count, size_t bytes) : member_count_(member_count) {
  windows_.assign(member_count, Window{std::vector<Value>(bytes), std::vector<uint32_t>(bytes, 0),
                                       std::vector<uint32_t>(bytes * member_count, 0)});
}

std::string CheckedWindows::read(size_t reader, const Clock& clock, const WindowRange& range,
                                 std::vector<Value>& values) {
  Window& window = windows_[range.owner];
  size_t at = range.first_byte;
  for (size_t e = 0; e < range.count_elems; ++e, at += range.bytes_each) {
    values[e] = window.values[at];
    if (values[e].form == Form::none) return "reads a window where nobody wrote";
    values[e].chain += range.owner == reader ? 0 : 1;
    for (size_t byte = at; byte < at + range.bytes_each; ++byte) {
      if (window.written_at[byte] > clock[range.owner]) {
        return text("races: reads byte ", byte, " of the window of ", range.owner, ", which nothing says is written");
      }
      window.read_at[byte * member_count_ + reader] = clock[reader];
    }
  }
  return {};
}

std::string CheckedWindows::write(const Clock& clock, const WindowRange& range, const std::vector<Value>& values) {
  Window& window = windows_[range.owner];
  size_t at = range.first_byte;
  for (size_t e = 0; e < range.count_elems; ++e, at += range.bytes_each) {
    window.values[at] = values[e];
    for (size_t byte = at; byte < at + range.bytes_each; ++byte) {
      for (size_t reader = 0; reader < member_count_; ++reader) {
        if (window.read_at[byte * member_count_ + reader] > clock[reader]) {
          return text("races: writes byte ", byte, " of its window, which ", reader, " may still read");
        }
      }
      window.written_at[byte] = clock[range.owner];
    }
  }
  return {};
}

}  // namespace halay::collective
