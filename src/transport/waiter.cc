#include "transport/waiter.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/text.h"

namespace halay::transport {
namespace {

constexpr uint64_t kBell = 0, kSockets = 1;
constexpr size_t kEventsAtOnce = 64;

Status cannot(std::string_view what) {
  return Status::no_memory(text("sleeping place: ", what, ": ", std::strerror(errno)));
}

// Nanoseconds where the kernel can, else whole milliseconds, rounded up.
int wait_until(int epoll, Time deadline, epoll_event* event) {
  const int64_t left_ns = deadline == Time::never() ? 0 : std::max<int64_t>(deadline.ns - system_clock().now().ns, 0);
  const timespec left{static_cast<time_t>(left_ns / 1'000'000'000), static_cast<long>(left_ns % 1'000'000'000)};
  const timespec* limit = deadline == Time::never() ? nullptr : &left;
  const long got = ::syscall(SYS_epoll_pwait2, epoll, event, 1, limit, nullptr, 0);
  if (got >= 0 || errno != ENOSYS) return static_cast<int>(got);
  const int64_t left_ms = std::min<int64_t>((left_ns + 999'999) / 1'000'000, INT32_MAX);
  return ::epoll_wait(epoll, event, 1, limit ? static_cast<int>(left_ms) : -1);
}

}  // namespace

Result<std::unique_ptr<Waiter>> Waiter::make() {
  auto waiter = std::make_unique<Waiter>();
  waiter->inner_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  waiter->outer_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!waiter->inner_ || !waiter->outer_) return cannot("epoll_create1");
  HALAY_TRY(region::Doorbell bell, region::Doorbell::create());
  waiter->bell_ = std::make_shared<const region::Doorbell>(std::move(bell));
  // Edge-triggered: each ring wakes once, and nobody has to quiet the bell.
  epoll_event on_bell{EPOLLIN | EPOLLET, {.u64 = kBell}};
  epoll_event on_sockets{EPOLLIN | EPOLLONESHOT, {.u64 = kSockets}};
  if (::epoll_ctl(waiter->outer_.get(), EPOLL_CTL_ADD, waiter->bell_->descriptor(), &on_bell) != 0 ||
      ::epoll_ctl(waiter->outer_.get(), EPOLL_CTL_ADD, waiter->inner_.get(), &on_sockets) != 0) {
    return cannot("epoll_ctl");
  }
  return waiter;
}

Status Waiter::watch(int fd, uint64_t tag) {
  epoll_event event{EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = tag}};
  if (::epoll_ctl(inner_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return cannot("epoll_ctl");
  return {};
}

void Waiter::forget(int fd) { ::epoll_ctl(inner_.get(), EPOLL_CTL_DEL, fd, nullptr); }

size_t Waiter::look(std::span<SocketEvent> events) {
  epoll_event raw[kEventsAtOnce];
  const int most = static_cast<int>(std::min(events.size(), kEventsAtOnce));
  const int count = ::epoll_wait(inner_.get(), raw, most, 0);
  for (int i = 0; i < count; ++i) {
    const uint32_t seen = raw[i].events;
    events[static_cast<size_t>(i)] = {raw[i].data.u64, (seen & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0,
                                      (seen & EPOLLOUT) != 0, (seen & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0};
  }
  return static_cast<size_t>(std::max(count, 0));
}

void Waiter::arm() {
  epoll_event on_sockets{EPOLLIN | EPOLLONESHOT, {.u64 = kSockets}};
  ::epoll_ctl(outer_.get(), EPOLL_CTL_MOD, inner_.get(), &on_sockets);
}

void Waiter::wait(Time deadline) {
  epoll_event event;
  wait_until(outer_.get(), deadline, &event);
}

}  // namespace halay::transport
