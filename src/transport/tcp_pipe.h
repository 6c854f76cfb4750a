// Pipe over a net::Stream. Asks the socket only when the poller said that it may give or take something.
// Thread: whoever holds the engine's token.   Owns: the stream, a small buffer of what was read ahead.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "net/stream.h"
#include "transport/pipe.h"

namespace halay::transport {

class TcpPipe final : public Pipe {
 public:
  explicit TcpPipe(std::unique_ptr<net::Stream> stream);
  ~TcpPipe() override;

  std::string_view transport() const override { return "tcp"; }
  size_t write(std::span<const std::span<const std::byte>> parts) override;
  size_t read(std::span<std::byte> into) override;
  bool ended() override;
  void ring() override {}

  int descriptor() const { return stream_->fd(); }
  // What an edge-triggered poller saw; `hung_up`: read until the end.
  void became_readable(bool hung_up) { readable_ = true, hung_up_ |= hung_up; }
  void became_writable() { writable_ = true; }
  // The peer's process is gone although somebody still holds its socket: ended once nothing is left to read.
  void peer_gone() { peer_gone_ = readable_ = true; }
  bool can_read() const { return readable_ || read_ahead_at_ < read_ahead_end_; }
  bool can_write() const { return writable_; }
  // So far; grows while the peer speaks at all.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  size_t read_stream(std::span<std::byte> into);

  std::unique_ptr<net::Stream> stream_;
  std::vector<std::byte> read_ahead_;
  size_t read_ahead_at_ = 0, read_ahead_end_ = 0;
  uint64_t bytes_read_ = 0;
  bool readable_ = true, writable_ = true;
  bool hung_up_ = false, peer_gone_ = false, broken_ = false;
};

}  // namespace halay::transport
