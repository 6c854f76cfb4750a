// Sink: the launcher's own standard output or error. Takes whole lines, never blocks the launcher when the reader is
// slow, and never cuts a line of one rank by one of another.
// Thread: one at a time.   Owns: what is queued; not the descriptor.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace halay::launch {

class Sink {
 public:
  // A plain file is written at once; a pipe, terminal or socket only when it can take more.
  explicit Sink(int fd);
  void push(std::string_view lines);
  // Writes as much as the reader takes now.
  void flush();
  // Keeps at it until everything has gone out, or the deadline.
  void drain(Time deadline);

  int fd() const { return fd_; }
  bool waits_for_reader() const { return !queue_.empty(); }
  // So much is queued that ranks should not be read any further.
  bool full() const { return queue_.size() - sent_ > kQueueBytesMost; }

 private:
  static constexpr size_t kQueueBytesMost = size_t{4} << 20;
  bool can_write() const;

  const int fd_;
  bool always_ready_ = false;
  bool closed_ = false;  // the reader has gone: what comes is thrown away, the job goes on
  std::string queue_;
  size_t sent_ = 0;
};

}  // namespace halay::launch
