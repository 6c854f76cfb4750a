// The thread that takes events out of the ring and puts them into the file. It sleeps while nothing happens.
// Thread: push: whoever holds the engine's token. finish: one thread, after the last push.   Owns: ring, thread, file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "base/annotations.h"
#include "base/name_table.h"
#include "base/status.h"
#include "trace/chrome_text.h"
#include "trace/event_ring.h"
#include "trace/trace_file.h"

namespace halay::trace {

class Writer {
 public:
  // `chrome` has written the header of `file`.
  Writer(ChromeText chrome, std::unique_ptr<TraceFile> file, const TimelineOptions& options);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // False: no room, the event is dropped and counted.
  bool push(const Event& event, std::span<const int64_t> dims);
  // Writes what is left, ends the thread and closes the file. The first failure of the disk, if there was one.
  Status finish();

 private:
  void run();
  void drain();
  void append_events(std::string& out);
  void wait();
  void wake(bool hurry);

  ChromeText chrome_;
  const std::unique_ptr<TraceFile> file_;
  const TimelineOptions options_;
  EventRing ring_;
  std::atomic<uint64_t> dropped_{0};

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::atomic<bool> idle_{false};   // the writer sleeps until an event comes; changes under mutex_
  std::atomic<bool> hurry_{false};  // the ring fills up: write at once; changes under mutex_
  bool finishing_ HALAY_GUARDED_BY(mutex_) = false;

  // The writer thread's own; finish() reads them when it has ended.
  std::string text_;
  uint64_t dropped_noted_ = 0;
  uint64_t left_out_ = 0;  // events after the file was full
  bool full_ = false;
  Status failure_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace halay::trace
