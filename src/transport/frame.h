// The 24 bytes before every frame of a Channel, as pure functions. docs/wire.md draws them.
//   0  magic 0x4C48, 16 bits   2  kind   3  zero   4  number of the frame, 32 bits   8  lane, 64 bits
//   16 length of the payload in bytes, 64 bits                                       little-endian
// Thread: any (no state).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "transport/channel.h"

namespace halay::transport {

inline constexpr size_t kFrameHeaderBytes = 24;
// More than this is no frame of ours: messages are small, and no machine holds a larger tensor.
inline constexpr uint64_t kMostMessageBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMostDataBytes = uint64_t{1} << 48;

struct FrameHeader {
  FrameKind kind = FrameKind::data;
  uint32_t number = 0;  // of the frame in its direction, wrapping: a lost or doubled frame is seen
  uint64_t lane = 0;
  uint64_t payload_bytes = 0;
  bool operator==(const FrameHeader&) const = default;
};

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
// internal: says what is broken. `bytes` must be kFrameHeaderBytes long.
Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes);

}  // namespace halay::transport
