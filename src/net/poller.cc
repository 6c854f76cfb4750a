#include "net/poller.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/text.h"
#include "net/errors.h"

namespace halay::net {

Result<Poller> Poller::make() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_failure("make a poller", "", errno);
  return Poller(std::move(epoll));
}

Status Poller::control(int operation, int fd, Interest interest, uint64_t tag) {
  epoll_event event{};
  const auto bits = static_cast<unsigned>(interest);
  if (bits & static_cast<unsigned>(Interest::read)) event.events |= EPOLLIN | EPOLLRDHUP;
  if (bits & static_cast<unsigned>(Interest::write)) event.events |= EPOLLOUT;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return {};
  if (errno == EPERM) return Status::unsupported(text("descriptor ", fd, " cannot be waited for"));
  return system_failure("watch", text("descriptor ", fd), errno);
}

Status Poller::add(int fd, Interest interest, uint64_t tag) { return control(EPOLL_CTL_ADD, fd, interest, tag); }
Status Poller::change(int fd, Interest interest, uint64_t tag) { return control(EPOLL_CTL_MOD, fd, interest, tag); }
void Poller::remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

size_t Poller::wait(Time deadline, std::span<PollEvent> events) {
  epoll_event raw[64];
  const int capacity = static_cast<int>(std::min(events.size(), std::size(raw)));
  const int count = ::epoll_wait(epoll_.get(), raw, capacity, milliseconds_until(deadline));
  for (int i = 0; i < count; ++i) {
    const uint32_t bits = raw[i].events;
    events[static_cast<size_t>(i)] = {raw[i].data.u64, (bits & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                                      (bits & EPOLLOUT) != 0, (bits & (EPOLLHUP | EPOLLERR)) != 0};
  }
  return static_cast<size_t>(std::max(count, 0));  // a signal: no event
}

int milliseconds_until(Time deadline) {
  if (deadline == Time::never()) return -1;
  const Time now = system_clock().now();
  if (deadline <= now) return 0;
  const int64_t ms = (deadline.ns - now.ns + 999'999) / 1'000'000;
  return static_cast<int>(std::min<int64_t>(ms, INT_MAX));
}

}  // namespace halay::net
