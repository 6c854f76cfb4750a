// Any bytes into the parsers of the launcher's store. First byte: which parser and kind.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "net/frame.h"
#include "rendezvous/store_protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halay;
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  const uint32_t kind = data[0];
  if (kind == 0) {
    const auto header = net::decode_frame_header(bytes, uint64_t{1} << 40);
    if (header.ok()) HALAY_ASSERT(header.value().length_bytes <= uint64_t{1} << 40);
    return 0;
  }
  if (const auto request = rendezvous::parse_request(kind, bytes); request.ok()) {
    HALAY_ASSERT(request.value().key.size() <= rendezvous::kKeyBytesMost);
    HALAY_ASSERT(request.value().value.size() <= rendezvous::kValueBytesMost);
    HALAY_ASSERT(rendezvous::encode(request.value()).size() == bytes.size());
  }
  if (const auto reply = rendezvous::parse_reply(kind, bytes); reply.ok()) {
    HALAY_ASSERT(rendezvous::encode(reply.value()).size() == bytes.size());
  }
  return 0;
}
