#include "region/local_socket.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/hmac.h"
#include "base/text.h"

namespace halay::region {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct Name {
  sockaddr_un address{};
  socklen_t length = 0;
};

Name abstract_name(std::string_view name) {
  Name out;
  out.address.sun_family = AF_UNIX;
  const size_t count = std::min(name.size(), sizeof out.address.sun_path - 1);
  std::memcpy(out.address.sun_path + 1, name.data(), count);
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return out;
}

std::string random_name() {
  std::array<std::byte, 12> bytes;
  random_bytes(bytes);
  std::string out = "halay-";
  for (std::byte b : bytes) {
    out += static_cast<char>('a' + (std::to_integer<int>(b) & 15));
    out += static_cast<char>('a' + (std::to_integer<int>(b) >> 4));
  }
  return out;
}

}  // namespace

Result<LocalListener> listen_local() {
  LocalListener out;
  out.socket = UniqueFd(::socket(AF_UNIX, kType, 0));
  out.name = random_name();
  const Name name = abstract_name(out.name);
  if (!out.socket || ::bind(out.socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      ::listen(out.socket.get(), 1024) != 0) {
    return Status::unsupported(text("no local socket: ", std::strerror(errno)));
  }
  return out;
}

Result<UniqueFd> connect_local(std::string_view name) {
  UniqueFd socket(::socket(AF_UNIX, kType, 0));
  if (!socket) return Status::unsupported(text("no local socket: ", std::strerror(errno)));
  const Name target = abstract_name(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.length) == 0) return socket;
  if (errno == EAGAIN || errno == EINTR) return UniqueFd();
  return Status::unsupported(text("local socket: ", std::strerror(errno)));
}

UniqueFd accept_local(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int32_t peer_process(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return 0;
  return credentials.pid;
}

Passing send_local(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  HALAY_ASSERT(descriptors.size() <= kMostDescriptors);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  while (true) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Passing::done;
    if (errno == EINTR) continue;
    // ETOOMANYREFS: more descriptors on their way than this user may have; they arrive when the peer takes some.
    const bool later = errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS;
    return later ? Passing::would_block : Passing::ended;
  }
}

Passing receive_local(int socket, size_t most_bytes, LocalMessage& into) {
  into.bytes.resize(most_bytes);
  into.descriptors.clear();
  iovec part{into.bytes.data(), into.bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> space{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Passing::would_block : Passing::ended;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      into.descriptors.emplace_back(fd);
    }
  }
  into.bytes.resize(static_cast<size_t>(got));
  const bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  return got == 0 || cut ? Passing::ended : Passing::done;
}

UniqueFd watch_process(int32_t pid) {
  if (pid <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace halay::region
