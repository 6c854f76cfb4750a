#include "transport/tcp_pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halay::transport {
namespace {

// A header and a small message come with one system call; what is larger goes straight to its place.
constexpr size_t kReadAheadBytes = 16 << 10;
constexpr int kDrainReads = 64;

}  // namespace

TcpPipe::TcpPipe(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)), read_ahead_(kReadAheadBytes) {}

TcpPipe::~TcpPipe() {
  stream_->end_writing();
  // Closing with unread bytes would reset the connection, and the peer might lose our last words.
  for (int i = 0; i < kDrainReads; ++i) {
    const Result<size_t> got = stream_->read_some(read_ahead_);
    if (!got.ok() || got.value() == 0) break;
  }
}

size_t TcpPipe::write(std::span<const std::span<const std::byte>> parts) {
  if (!writable_ || broken_) return 0;
  const Result<size_t> written = stream_->write_some(parts);
  if (!written.ok()) {
    // What the peer sent before is still read; then read_stream() sees the end.
    broken_ = hung_up_ = readable_ = true;
    return 0;
  }
  size_t offered = 0;
  for (const auto& part : parts) offered += part.size();
  if (written.value() < offered) writable_ = false;
  return written.value();
}

size_t TcpPipe::read_stream(std::span<std::byte> into) {
  if (!readable_) return 0;
  const Result<size_t> got = stream_->read_some(into);
  if (!got.ok()) {
    broken_ = hung_up_ = true, readable_ = false;
    return 0;
  }
  // A short read has emptied the socket, unless the end waits behind it.
  if (got.value() < into.size() && !(got.value() > 0 && (hung_up_ || peer_gone_))) readable_ = false;
  if (got.value() == 0 && peer_gone_) hung_up_ = true;
  bytes_read_ += got.value();
  return got.value();
}

size_t TcpPipe::read(std::span<std::byte> into) {
  if (read_ahead_at_ == read_ahead_end_) {
    if (into.size() >= kReadAheadBytes) return read_stream(into);
    read_ahead_at_ = 0;
    read_ahead_end_ = read_stream(read_ahead_);
  }
  const size_t count = std::min(into.size(), read_ahead_end_ - read_ahead_at_);
  if (count > 0) std::memcpy(into.data(), read_ahead_.data() + read_ahead_at_, count);
  read_ahead_at_ += count;
  return count;
}

bool TcpPipe::ended() {
  if (read_ahead_at_ < read_ahead_end_ || readable_) return false;
  return stream_->ended() || (hung_up_ && (broken_ || peer_gone_));
}

}  // namespace halay::transport
