#include "region/doorbell.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace halay::region {

Result<Doorbell> Doorbell::create() {
  UniqueFd fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) return Status::no_memory(text("no eventfd: ", std::strerror(errno)));
  return Doorbell(std::move(fd));
}

Result<Doorbell> Doorbell::copy() const {
  UniqueFd fd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return Status::no_memory(text("no copy of an eventfd: ", std::strerror(errno)));
  return Doorbell(std::move(fd));
}

void Doorbell::ring() const {
  const uint64_t one = 1;
  // Fails only when it has been rung 2^64 times already, and then it is loud enough.
  while (::write(fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Doorbell::quiet() const {
  uint64_t count = 0;
  while (::read(fd_.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace halay::region
