#include "net/connect.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/text.h"
#include "net/errors.h"
#include "net/poller.h"

namespace halay::net {
namespace {

bool wait_for(int fd, short interest, Time deadline) {
  while (true) {
    pollfd watched{fd, interest, 0};
    const int ready = ::poll(&watched, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (deadline <= system_clock().now()) return false;
  }
}

// A unix socket whose listener is busy does not report progress to a poller; the kernel waits for us, with a timeout.
Result<std::unique_ptr<Stream>> connect_unix(const Address& address, Time deadline) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return system_failure("make a socket for", address.text(), errno);
  while (true) {
    const int ms = milliseconds_until(deadline);
    if (ms == 0) return Status::timeout(text("connect to ", address.text(), ": timed out"));
    const timeval wait{std::max(ms, 0) / 1000, (std::max(ms, 0) % 1000) * 1000};  // 0: without limit
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (::connect(socket.get(), address.raw(), address.raw_bytes()) == 0 || errno == EISCONN) {
      return plain_stream(std::move(socket), address.text());
    }
    if (errno != EINTR && errno != EAGAIN) return system_failure("connect to", address.text(), errno);
  }
}

}  // namespace

bool wait_readable(int fd, Time deadline) { return wait_for(fd, POLLIN, deadline); }
bool wait_writable(int fd, Time deadline) { return wait_for(fd, POLLOUT, deadline); }

Result<Connecting> Connecting::start(const Address& address) {
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_failure("make a socket for", address.text(), errno);
  const int failed = ::connect(socket.get(), address.raw(), address.raw_bytes());
  if (failed != 0 && errno != EINPROGRESS && errno != EINTR) return system_failure("connect to", address.text(), errno);
  return Connecting(std::move(socket), address);
}

Result<bool> Connecting::finished() {
  if (!wait_writable(socket_.get(), Time{})) return false;
  int error = 0;
  socklen_t bytes = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) return system_failure("connect to", address_.text(), error);
  return true;
}

std::unique_ptr<Stream> Connecting::take() && { return plain_stream(std::move(socket_), address_.text()); }

Result<std::unique_ptr<Stream>> connect(const Address& address, Time deadline) {
  if (address.is_unix()) return connect_unix(address, deadline);
  return connect_first({&address, 1}, deadline);
}

Result<std::unique_ptr<Stream>> connect_first(std::span<const Address> addresses, Time deadline) {
  HALAY_TRY(Poller poller, Poller::make());
  std::vector<Connecting> tries;
  std::string reasons;
  Status last = Status::invalid_argument("no address to connect to");
  const auto note = [&](Status failure) {
    if (!reasons.empty()) reasons += "; ";
    reasons += failure.text();
    last = std::move(failure);
  };
  for (const Address& address : addresses) {
    Result<Connecting> begun = Connecting::start(address);
    Status watched = begun.ok() ? poller.add(begun.value().fd(), Interest::write, tries.size()) : begun.status();
    if (!watched.ok()) {
      note(std::move(watched));
    } else {
      tries.push_back(std::move(begun).value());
    }
  }
  size_t open_count = tries.size();
  while (open_count > 0) {
    PollEvent events[16];
    const size_t count = poller.wait(deadline, events);
    for (size_t i = 0; i < count; ++i) {
      Connecting& attempt = tries[events[i].tag];
      Result<bool> finished = attempt.finished();
      if (finished.ok() && finished.value()) return std::move(attempt).take();
      if (finished.ok()) continue;
      poller.remove(attempt.fd());
      --open_count;
      note(finished.status());
    }
    if (count == 0 && deadline <= system_clock().now()) {
      for (const Connecting& attempt : tries) {
        if (attempt.fd() >= 0) note(Status::timeout(text("connect to ", attempt.address().text(), ": timed out")));
      }
      break;
    }
  }
  return Status(last.code(), reasons.empty() ? last.text() : reasons);
}

Status write_all(Stream& stream, Parts parts, std::string_view stage, Time deadline) {
  std::vector<std::span<const std::byte>> rest(parts.begin(), parts.end());
  size_t first = 0, written = 0;
  while (true) {
    while (first < rest.size() && rest[first].empty()) ++first;
    if (first == rest.size()) return {};
    Result<size_t> some = stream.write_some(Parts(rest).subspan(first));
    if (!some.ok()) return Status(some.status().code(), text(stage, ": ", some.status().text()));
    size_t taken = some.value();
    written += taken;
    for (size_t i = first; taken > 0; ++i) {
      const size_t step = std::min(taken, rest[i].size());
      rest[i] = rest[i].subspan(step);
      taken -= step;
    }
    if (some.value() == 0 && !wait_writable(stream.fd(), deadline)) {
      return Status::timeout(text(stage, " (", stream.peer(), "): timed out after writing ", written, " bytes"));
    }
  }
}

Status read_all(Stream& stream, std::span<std::byte> into, std::string_view stage, Time deadline) {
  for (size_t done = 0; done < into.size();) {
    Result<size_t> some = stream.read_some(into.subspan(done));
    if (!some.ok()) return Status(some.status().code(), text(stage, ": ", some.status().text()));
    done += some.value();
    if (stream.ended()) {
      return Status::peer_lost(
          -1, text(stage, " (", stream.peer(), "): the peer closed after ", done, " of ", into.size(), " bytes"));
    }
    if (some.value() == 0 && !wait_readable(stream.fd(), deadline)) {
      return Status::timeout(
          text(stage, " (", stream.peer(), "): timed out after ", done, " of ", into.size(), " bytes"));
    }
  }
  return {};
}

}  // namespace halay::net
