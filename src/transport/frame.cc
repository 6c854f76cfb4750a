#include "transport/frame.h"

#include "base/bytes.h"
#include "base/text.h"

namespace halay::transport {
namespace {

constexpr uint16_t kMagic = 0x4C48;  // "HL"
constexpr auto kLastKind = static_cast<uint8_t>(FrameKind::heartbeat);

template <typename T>
void put(std::byte* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

}  // namespace

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> out;
  put(out.data(), kMagic);
  put(out.data() + 2, static_cast<uint8_t>(header.kind));
  put(out.data() + 3, uint8_t{0});
  put(out.data() + 4, header.number);
  put(out.data() + 8, header.lane);
  put(out.data() + 16, header.payload_bytes);
  return out;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.number<uint16_t>();
  const auto kind = reader.number<uint8_t>();
  const auto zero = reader.number<uint8_t>();
  FrameHeader header;
  header.number = reader.number<uint32_t>();
  header.lane = reader.number<uint64_t>();
  header.payload_bytes = reader.number<uint64_t>();
  if (!reader.complete()) return Status::internal(text("a frame header of ", bytes.size(), " bytes, not 24"));
  if (magic != kMagic || zero != 0)
    return Status::internal(text("a frame that does not begin as one: ", magic, ", ", zero));
  if (kind > kLastKind) return Status::internal(text("a frame of unknown kind ", kind));
  header.kind = static_cast<FrameKind>(kind);
  const uint64_t most = header.kind == FrameKind::data ? kMostDataBytes : kMostMessageBytes;
  if (header.payload_bytes > most) {
    return Status::internal(text("a frame of kind ", kind, " with ", header.payload_bytes, " bytes, at most ", most));
  }
  return header;
}

}  // namespace halay::transport
