// Events as the text of a Chrome trace (a JSON array of objects), in Horovod's vocabulary. Knows nothing of files.
// Thread: one at a time.   Owns: which tensors it has introduced.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_table.h"
#include "trace/event.h"
#include "trace/timeline.h"

namespace halay::trace {

class ChromeText {
 public:
  ChromeText(const NameTable& names, const TimelineOptions& options);

  // Objects that a trace begins with. Each object that these functions append ends with ",\n".
  void append_header(std::string& out, int64_t epoch_us) const;
  void append(std::string& out, const Event& event, std::span<const int64_t> dims);
  // An instant that concerns the file itself: events that were dropped, or a file that is full.
  void append_note(std::string& out, std::string_view note, std::string_view count_name, uint64_t count);

 private:
  struct Track {
    uint32_t pid = 0;    // 0: the tensor was not introduced
    uint16_t depth = 0;  // of begun slices, so that no end stands without its begin where a trace starts in the middle
  };
  uint32_t track(std::string& out, NameId name);
  void begin(std::string& out, const Event& event, std::string_view prefix, std::string_view what);
  void append_time(std::string& out, Time at);

  const NameTable& names_;
  const TimelineOptions options_;
  std::vector<std::string> op_names_;  // by number, as upper_name() has them
  std::vector<Track> tracks_;          // by NameId
  uint32_t pids_ = 0;
  Time last_{0};
};

// `text` inside quotes, as JSON has it: quotes, backslashes and control characters escaped, bytes that are not UTF-8
// replaced by U+FFFD, cut after about 1000 bytes.
void append_json_string(std::string& out, std::string_view text);
// "ALLREDUCE"
std::string upper_name(OpKind kind);
std::string_view name_of(Activity activity);
// One line of the flight recorder.
void append_line(std::string& out, const NameTable& names, const Event& event);

}  // namespace halay::trace
