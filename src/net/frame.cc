#include "net/frame.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "net/connect.h"

namespace halay::net {
namespace {

constexpr uint32_t kMagic = 0x31594c48;   // "HLY1"
constexpr size_t kGrowBytes = 64 * 1024;  // memory follows what has arrived, not what was announced

}  // namespace

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header) {
  ByteWriter writer;
  writer.number(kMagic).number(header.kind).number(header.length_bytes);
  std::array<std::byte, kFrameHeaderBytes> out{};
  std::ranges::copy(writer.view(), out.begin());
  return out;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes, uint64_t most_bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.number<uint32_t>();
  FrameHeader header;
  header.kind = reader.number<uint32_t>();
  header.length_bytes = reader.number<uint64_t>();
  if (!reader.complete()) return Status::invalid_argument(text("a frame header of ", bytes.size(), " bytes, not 16"));
  if (magic != kMagic) return Status::invalid_argument("not a frame of halay (wrong first bytes)");
  if (header.length_bytes > most_bytes) {
    return Status::invalid_argument(
        text("a frame of ", header.length_bytes, " bytes, at most ", most_bytes, " are allowed"));
  }
  return header;
}

Result<std::optional<Frame>> FrameReader::read(Stream& stream) {
  while (true) {
    const bool in_head = head_filled_ < kFrameHeaderBytes;
    if (!in_head && payload_filled_ == header_.length_bytes) {
      payload_.resize(payload_filled_);
      head_filled_ = payload_filled_ = 0;
      return std::optional(Frame{header_.kind, std::exchange(payload_, {})});
    }
    std::span<std::byte> into = std::span(head_).subspan(head_filled_);
    if (!in_head) {
      if (payload_filled_ == payload_.size()) {
        payload_.resize(payload_filled_ + std::min<uint64_t>(kGrowBytes, header_.length_bytes - payload_filled_));
      }
      into = std::span(payload_).subspan(payload_filled_);
    }
    HALAY_TRY(const size_t count, stream.read_some(into));
    if (count == 0) {
      if (!stream.ended()) return std::optional<Frame>();
      if (head_filled_ == 0) return Status::peer_lost(-1, text(stream.peer(), ": the peer closed"));
      return Status::invalid_argument(text(stream.peer(), ": the peer closed inside a frame"));
    }
    if (!in_head) {
      payload_filled_ += count;
      continue;
    }
    head_filled_ += count;
    if (head_filled_ == kFrameHeaderBytes) {
      HALAY_TRY(header_, decode_frame_header(head_, most_bytes_));
    }
  }
}

void FrameWriter::queue(uint32_t kind, std::span<const std::byte> payload) {
  if (sent_ == bytes_.size()) {
    bytes_.clear();
    sent_ = 0;
  }
  const auto head = encode({kind, payload.size()});
  bytes_.insert(bytes_.end(), head.begin(), head.end());
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
}

Result<bool> FrameWriter::flush(Stream& stream) {
  while (sent_ < bytes_.size()) {
    const std::span<const std::byte> rest = std::span(bytes_).subspan(sent_);
    HALAY_TRY(const size_t count, stream.write_some({&rest, 1}));
    if (count == 0) return false;
    sent_ += count;
  }
  return true;
}

Status write_frame(Stream& stream, uint32_t kind, std::span<const std::byte> payload, std::string_view stage,
                   Time deadline) {
  const auto head = encode({kind, payload.size()});
  const std::span<const std::byte> parts[] = {head, payload};
  return write_all(stream, parts, stage, deadline);
}

Result<Frame> read_frame(Stream& stream, FrameReader& reader, std::string_view stage, Time deadline) {
  while (true) {
    Result<std::optional<Frame>> frame = reader.read(stream);
    if (!frame.ok()) return Status(frame.status().code(), text(stage, ": ", frame.status().text()));
    if (frame.value()) return *std::move(frame).value();
    if (!wait_readable(stream.fd(), deadline)) {
      return Status::timeout(text(stage, " (", stream.peer(), "): timed out waiting for an answer"));
    }
  }
}

}  // namespace halay::net
