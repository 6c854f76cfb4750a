#include "net/errors.h"

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace halay::net {

Status system_failure(std::string_view stage, std::string_view address, int error_number) {
  char buffer[128];
  const char* reason = ::strerror_r(error_number, buffer, sizeof buffer);
  std::string message = text(stage, address.empty() ? "" : " ", address, ": ", reason);
  switch (error_number) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return Status::no_memory(std::move(message));
    case ETIMEDOUT:
      return Status::timeout(std::move(message));
    default:
      return Status::peer_lost(-1, std::move(message));
  }
}

}  // namespace halay::net
