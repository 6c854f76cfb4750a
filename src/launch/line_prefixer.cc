#include "launch/line_prefixer.h"

#include <algorithm>

namespace halay::launch {

void LinePrefixer::emit(std::string_view line, std::string_view stamp, std::string& out) {
  out += stamp;
  out += prefix_;
  out += partial_;
  out += line;
  partial_.clear();
}

void LinePrefixer::feed(std::string_view bytes, std::string_view stamp, std::string& out) {
  while (!bytes.empty()) {
    size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) {
      const size_t room = kLineBytesMost - std::min(partial_.size(), kLineBytesMost);
      if (bytes.size() < room) {
        partial_ += bytes;
        return;
      }
      emit(bytes.substr(0, room), stamp, out);
      out += '\n';
      bytes.remove_prefix(room);
      continue;
    }
    const bool pair = bytes[end] == '\r' && end + 1 < bytes.size() && bytes[end + 1] == '\n';
    end += pair ? 2 : 1;
    emit(bytes.substr(0, end), stamp, out);
    bytes.remove_prefix(end);
  }
}

void LinePrefixer::finish(std::string_view stamp, std::string& out) {
  if (partial_.empty()) return;
  emit("\n", stamp, out);
}

}  // namespace halay::launch
