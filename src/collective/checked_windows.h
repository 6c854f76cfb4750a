// The windows of the checker: what lies in them, and whether each access is ordered against the others by what its
// member knows (vector clocks). Private to this room. Thread: one.   Owns: their symbolic contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collective/symbolic.h"

namespace halay::collective {

using Clock = std::vector<uint32_t>;  // what a member knows of each member's past

// Two clocks into one: the later of both, member by member.
void join(Clock& mine, const Clock& other);

// Elements in the window of one member, from a byte on.
struct WindowRange {
  size_t owner, first_byte, bytes_each, count_elems;
};

class CheckedWindows {
 public:
  CheckedWindows() = default;
  CheckedWindows(size_t member_count, size_t bytes);

  // They return what is wrong, or nothing. A value read from another member's window has gone through a hand-over.
  std::string read(size_t reader, const Clock& clock, const WindowRange& range, std::vector<Value>& values);
  // `clock` is the owner's.
  std::string write(const Clock& clock, const WindowRange& range, const std::vector<Value>& values);

 private:
  // By byte, since operations of different dtypes follow each other.
  struct Window {
    std::vector<Value> values;         // of the element that starts here
    std::vector<uint32_t> written_at;  // the owner's clock
    std::vector<uint32_t> read_at;     // byte * p + reader: the reader's clock
  };

  size_t member_count_ = 0;
  std::vector<Window> windows_;
};

}  // namespace halay::collective
