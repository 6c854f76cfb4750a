// Waiter: where one rank sleeps. Two epolls: the inner one watches the sockets, edge-triggered, and is asked only by
// the holder of the engine's token; the outer one has the doorbell and, armed once for each arm(), the inner epoll. So
// a socket that somebody else is draining wakes the sleeper at most once.
//
// Thread: wait() one thread at a time, without the token; wake() any; the rest with the token. Owns: both epolls and
// this rank's doorbell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "region/doorbell.h"

namespace halay::transport {

struct SocketEvent {
  uint64_t tag = 0;
  bool readable = false, writable = false, hung_up = false;
};

class Waiter {
 public:
  static Result<std::unique_ptr<Waiter>> make();

  Status watch(int fd, uint64_t tag);
  void forget(int fd);
  // What has changed since the last look; never blocks. Returns how many events were written.
  size_t look(std::span<SocketEvent> events);

  void arm();
  void wait(Time deadline);
  void wake() { bell_->ring(); }
  const std::shared_ptr<const region::Doorbell>& bell() const { return bell_; }

 private:
  UniqueFd inner_, outer_;
  std::shared_ptr<const region::Doorbell> bell_;
};

}  // namespace halay::transport
