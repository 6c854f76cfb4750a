// Frames: a header with a kind and a 64-bit length, then the payload. For conversations of few, small messages (the
// store, a handshake). A length above the reader's limit is refused before anything is allocated.
//   0  magic "HLY1"   4  kind, 32 bits   8  length of the payload in bytes, 64 bits   16  payload        little-endian
// Thread: one at a time.   Owns: what has been read or queued.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/stream.h"

namespace halay::net {

struct FrameHeader {
  uint32_t kind = 0;
  uint64_t length_bytes = 0;
  bool operator==(const FrameHeader&) const = default;
};
constexpr size_t kFrameHeaderBytes = 16;

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
// invalid_argument: not a frame, or longer than `most_bytes`.
Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes, uint64_t most_bytes);

struct Frame {
  uint32_t kind = 0;
  std::vector<std::byte> payload;
};

// Collects frames from a stream that gives bytes when it likes.
class FrameReader {
 public:
  explicit FrameReader(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  // The next whole frame; nothing: more has to come. Not ok: broken, refused, or ended inside a frame.
  Result<std::optional<Frame>> read(Stream& stream);
  // Allows longer frames from now on (a peer that has proved itself).
  void set_limit(uint64_t most_bytes) { most_bytes_ = most_bytes; }

 private:
  uint64_t most_bytes_;
  std::array<std::byte, kFrameHeaderBytes> head_{};
  size_t head_filled_ = 0;
  FrameHeader header_;
  std::vector<std::byte> payload_;
  size_t payload_filled_ = 0;
};

// Holds frames that the stream does not take yet.
class FrameWriter {
 public:
  void queue(uint32_t kind, std::span<const std::byte> payload);
  // true: everything has gone out.
  Result<bool> flush(Stream& stream);
  size_t queued_bytes() const { return bytes_.size() - sent_; }

 private:
  std::vector<std::byte> bytes_;
  size_t sent_ = 0;
};

// One frame, whole, with a deadline.
Status write_frame(Stream& stream, uint32_t kind, std::span<const std::byte> payload, std::string_view stage,
                   Time deadline);
Result<Frame> read_frame(Stream& stream, FrameReader& reader, std::string_view stage, Time deadline);

}  // namespace halay::net
