// Any bytes into what transport reads from others. First byte: which reader.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "transport/channel.h"
#include "transport/door_address.h"
#include "transport/frame.h"
#include "transport/handshake.h"

namespace {

using namespace halay;
using namespace halay::transport;
using Bytes = std::span<const std::byte>;

// Gives the bytes, then the end; takes and forgets everything.
class GivingPipe final : public Pipe {
 public:
  explicit GivingPipe(Bytes bytes) : rest_(bytes) {}
  std::string_view transport() const override { return "fuzz"; }
  size_t write(std::span<const Bytes> parts) override {
    size_t count = 0;
    for (const Bytes& part : parts) count += part.size();
    return count;
  }
  size_t read(std::span<std::byte> into) override {
    const size_t count = std::min(into.size(), rest_.size());
    std::copy_n(rest_.begin(), count, into.begin());
    rest_ = rest_.subspan(count);
    return count;
  }
  bool ended() override { return rest_.empty(); }
  void ring() override {}

 private:
  Bytes rest_;
};

class ForgettingSink final : public FrameSink {
 public:
  void on_frame(int32_t rank, FrameKind kind, uint64_t, Bytes payload) override {
    HALAY_ASSERT(rank == 3 && kind != FrameKind::data && payload.size() <= kMostMessageBytes);
  }
};

void feed_channel(Bytes bytes) {
  Channel channel(3, std::make_unique<GivingPipe>(bytes));
  ForgettingSink sink;
  std::vector<std::byte> first(16), second(40);
  Transfer to_first, to_second, late;
  channel.post_recv(0, first, &to_first);
  channel.post_recv(1, second, &to_second);
  for (int i = 0; i < 1000 && channel.status().ok(); ++i) channel.progress(sink);
  HALAY_ASSERT(!channel.status().ok() && !channel.status().text().empty());
  channel.post_recv(2, first, &late);  // perhaps it came early
  channel.cancel_lane(1);
}

void shake(Handshake handshake, Bytes bytes) {
  while (handshake.awaited_bytes() > 0 && handshake.awaited_bytes() <= bytes.size()) {
    const Bytes message = bytes.first(handshake.awaited_bytes());
    bytes = bytes.subspan(message.size());
    const bool ok = handshake.receive(message).ok();
    HALAY_ASSERT(!handshake.complete());  // nobody guesses the key
    if (!ok) break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Bytes bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const HandshakeIdentity identity{"key", {}, 1, 4};
  switch (data[0] % 5) {
    case 0:
      feed_channel(bytes);
      break;
    case 1:
      if (const auto header = decode_frame_header(bytes); header.ok()) {
        const auto again = encode(header.value());
        HALAY_ASSERT(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
      }
      break;
    case 2:
      if (const auto address = decode_door_address(bytes);
          address.ok() && address.value().wire_version == kWireVersion) {
        const auto again = decode_door_address(encode(address.value()));
        HALAY_ASSERT(again.ok() && again.value().tcp_addresses == address.value().tcp_addresses);
      }
      break;
    case 3:
      shake(Handshake::acceptor(identity), bytes);
      break;
    case 4:
      shake(Handshake::connector(identity, 0), bytes);
      break;
  }
  return 0;
}
