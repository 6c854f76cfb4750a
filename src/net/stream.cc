#include "net/stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "net/errors.h"

namespace halay::net {
namespace {

constexpr size_t kPartsAtOnce = 64;

class PlainStream final : public Stream {
 public:
  PlainStream(UniqueFd socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

  Result<size_t> write_some(Parts parts) override {
    iovec vectors[kPartsAtOnce];
    const size_t count = std::min(parts.size(), kPartsAtOnce);
    for (size_t i = 0; i < count; ++i) {
      vectors[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
    }
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    while (true) {
      const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
      if (errno != EINTR) return system_failure("write to", peer_, errno);
    }
  }

  Result<size_t> read_some(std::span<std::byte> into) override {
    if (into.empty() || ended_) return size_t{0};
    while (true) {
      const ssize_t n = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
      if (n > 0) return static_cast<size_t>(n);
      if (n == 0) {
        ended_ = true;
        return size_t{0};
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
      if (errno != EINTR) return system_failure("read from", peer_, errno);
    }
  }

  bool ended() const override { return ended_; }
  void end_writing() override { ::shutdown(socket_.get(), SHUT_WR); }
  int fd() const override { return socket_.get(); }
  const std::string& peer() const override { return peer_; }

 private:
  const UniqueFd socket_;
  const std::string peer_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Stream> plain_stream(UniqueFd socket, std::string peer) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // not TCP: refused, and not needed
  return std::make_unique<PlainStream>(std::move(socket), std::move(peer));
}

Result<StreamPair> stream_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return system_failure("make a pair of sockets", "", errno);
  }
  UniqueFd first(ends[0]), second(ends[1]);
  return StreamPair{plain_stream(std::move(first), "pair"), plain_stream(std::move(second), "pair")};
}

Result<PeerIdentity> peer_identity(const Stream& stream) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(stream.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    return system_failure("ask who is at", stream.peer(), errno);
  }
  return PeerIdentity{credentials.pid, credentials.uid, credentials.gid};
}

}  // namespace halay::net
