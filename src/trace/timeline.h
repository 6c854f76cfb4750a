// Timeline: what happened, as a Chrome trace in Horovod's vocabulary. Events go into a ring of fixed size; one thread writes.
// Thread: record_*: whoever holds the engine's token (they cost one branch when off). start, stop: any.
// Owns: the ring, the writer thread, the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "types/enums.h"
#include "types/shape.h"

namespace halay::trace {

// Activities inside an operation; the table (activity.def) has Horovod's names.
enum class Activity : uint8_t {
#define HALAY_ACTIVITY(name) name,
#include "trace/activity.def"
#undef HALAY_ACTIVITY
};

struct TimelineOptions {
  int32_t rank = 0, size = 1;
  bool mark_cycles = false;
  size_t max_bytes = 0;        // 0: no cap; else the file stays valid and stops growing there
  size_t ring_events = 1 << 16;
  int64_t flush_ms = 100;
};

class Timeline {
 public:
  explicit Timeline(NameTable& names);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // invalid_argument with path and reason if it cannot be written.
  Status start(const std::string& path, const TimelineOptions& options);
  Status stop();
  bool active() const { return active_flag_ != nullptr && *active_flag_; }

  void negotiate_begin(NameId name, OpKind kind, Time at);
  void rank_ready(NameId name, int32_t rank, Time at);
  void negotiate_end(NameId name, Time at);
  void operation_begin(NameId name, OpKind kind, Time at);
  void activity_begin(NameId name, Activity activity, Time at);
  void activity_end(NameId name, Time at);
  void operation_end(NameId name, DType dtype, const Shape& shape, Time at);
  void list_decided(uint64_t number, Time at);  // Horovod's cycle mark, with mark_cycles

  uint64_t dropped() const;   // events for which the ring had no room
  // The last events kept in memory, newest last, one a line; for the flight recorder. Works with no file.
  std::string recent() const;

 private:
  struct State;
  const bool* active_flag_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace halay::trace
