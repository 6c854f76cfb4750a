// Poller: one place to sleep until a descriptor can be read or written, or a time has come. Wraps epoll (by level).
// Thread: add, change and remove from any; wait from one at a time.   Owns: the epoll descriptor, not the watched ones.
#pragma once

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::net {

enum class Interest : uint8_t { none = 0, read = 1, write = 2, both = 3 };

struct PollEvent {
  uint64_t tag = 0;
  bool readable = false;  // bytes, somebody to accept, or the end
  bool writable = false;
  bool broken = false;  // error or hang-up: read to learn which
};

class Poller {
 public:
  static Result<Poller> make();

  // `tag` comes back with each event. unsupported: not a descriptor that can be waited for (a plain file is always
  // ready).
  Status add(int fd, Interest interest, uint64_t tag);
  Status change(int fd, Interest interest, uint64_t tag);
  void remove(int fd);

  // Sleeps until something happened, the deadline passed or a signal came; returns how many events were written.
  // A deadline in the past only looks. Rounds up to whole milliseconds, so it never wakes early to spin.
  size_t wait(Time deadline, std::span<PollEvent> events);

  // Can itself be watched by another Poller.
  int fd() const { return epoll_.get(); }

 private:
  explicit Poller(UniqueFd epoll) : epoll_(std::move(epoll)) {}
  Status control(int operation, int fd, Interest interest, uint64_t tag);
  UniqueFd epoll_;
};

// Milliseconds until the deadline for a system call: rounded up, 0 if it has passed, -1 for never.
int milliseconds_until(Time deadline);

}  // namespace halay::net
