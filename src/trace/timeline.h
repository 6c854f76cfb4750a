// Timeline: what happened, as a Chrome trace in Horovod's vocabulary. Events go into a ring of fixed size; one thread
// writes. The last few thousand events are also kept in memory, always: the flight recorder. Thread: the functions that
// record: whoever holds the engine's token. start, stop, dropped, recent: any. Owns: the rings, the writer thread, the
// file.
#pragma once

#include <atomic>
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
  size_t max_bytes = 0;           // 0: no cap; else the file stays valid and stops growing there
  size_t ring_events = 1 << 16;   // about 2 MiB; what does not fit is dropped and counted
  int64_t flush_ms = 50;          // an event is in the file this long after it happened, if the disk keeps up
  Time start_at = Time::never();  // where timestamps count from, by the clock of the events; never: now
};

class Timeline {
 public:
  explicit Timeline(NameTable& names);
  // Stops.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // invalid_argument with path and reason if it cannot be written, or if a file is being written already. An old file
  // is replaced. Next to it there is `path`.part while it is being written.
  Status start(const std::string& path, const TimelineOptions& options);
  // Writes what is in the ring and closes the file. Not ok if the disk failed meanwhile. Ok if nothing was started.
  Status stop();
  bool active() const { return active_.load(std::memory_order_relaxed); }

  // Recording costs a few nanoseconds while no file is written.
  void negotiate_begin(NameId name, OpKind kind, Time at);
  void rank_ready(NameId name, int32_t rank, Time at);
  void negotiate_end(NameId name, Time at);
  void operation_begin(NameId name, OpKind kind, Time at);
  void activity_begin(NameId name, Activity activity, Time at);
  void activity_end(NameId name, Time at);
  void operation_end(NameId name, DType dtype, const Shape& shape, Time at);
  void list_decided(uint64_t number, Time at);  // in the file Horovod's cycle mark, with mark_cycles

  uint64_t dropped() const;  // events for which the ring had no room, since the engine began
  // The last events kept in memory, newest last, one a line; for the flight recorder. Works with no file.
  std::string recent() const;

 private:
  struct State;
  std::atomic<bool> active_{false};
  std::unique_ptr<State> state_;
};

}  // namespace halay::trace
