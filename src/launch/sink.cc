#include "launch/sink.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "net/connect.h"

namespace halay::launch {
namespace {

// Once a pipe says that it can be written, this much goes in without blocking (PIPE_BUF).
constexpr size_t kStepBytes = 4096;

}  // namespace

Sink::Sink(int fd) : fd_(fd) {
  struct stat what{};
  always_ready_ = ::fstat(fd, &what) == 0 && S_ISREG(what.st_mode);
}

bool Sink::can_write() const {
  pollfd watched{fd_, POLLOUT, 0};
  return always_ready_ || ::poll(&watched, 1, 0) > 0;
}

void Sink::push(std::string_view lines) {
  if (closed_) return;
  queue_ += lines;
  flush();
}

void Sink::flush() {
  while (sent_ < queue_.size() && can_write()) {
    const size_t step = always_ready_ ? queue_.size() - sent_ : std::min(kStepBytes, queue_.size() - sent_);
    const ssize_t count = ::write(fd_, queue_.data() + sent_, step);
    if (count > 0) {
      sent_ += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      closed_ = true;
      sent_ = queue_.size();
    }
  }
  if (sent_ == queue_.size()) {
    queue_.clear();
    sent_ = 0;
  } else if (sent_ > kQueueBytesMost) {
    queue_.erase(0, sent_);
    sent_ = 0;
  }
}

void Sink::drain(Time deadline) {
  flush();
  while (waits_for_reader() && net::wait_writable(fd_, deadline)) flush();
}

}  // namespace halay::launch
