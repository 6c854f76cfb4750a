#include "rendezvous/store_protocol.h"

#include "base/bytes.h"
#include "base/text.h"

namespace halay::rendezvous {
namespace {

Status check_key(std::string_view key) {
  if (key.empty() || key.size() > kKeyBytesMost) {
    return Status::invalid_argument(text("a key of ", key.size(), " bytes, 1 to ", kKeyBytesMost, " are allowed"));
  }
  return {};
}

std::vector<std::byte> owned(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

std::vector<std::byte> encode(const StoreRequest& request) {
  ByteWriter writer;
  writer.block(bytes_of(request.key));
  if (request.kind == StoreKind::put) writer.block(request.value);
  if (request.kind == StoreKind::collect) writer.number(request.count);
  if (request.kind != StoreKind::put) writer.number(request.timeout_ms);
  return writer.take();
}

std::vector<std::byte> encode(const StoreReply& reply) {
  ByteWriter writer;
  if (reply.kind == StoreKind::refused) writer.block(bytes_of(reply.text));
  if (reply.kind == StoreKind::pairs) {
    writer.number(static_cast<uint8_t>(reply.complete)).number(static_cast<uint32_t>(reply.pairs.size()));
    for (const StorePair& pair : reply.pairs) writer.block(bytes_of(pair.key)).block(pair.value);
  }
  return writer.take();
}

Result<StoreRequest> parse_request(uint32_t kind, std::span<const std::byte> payload) {
  StoreRequest request;
  request.kind = static_cast<StoreKind>(kind);
  const bool known =
      request.kind == StoreKind::put || request.kind == StoreKind::get || request.kind == StoreKind::collect;
  if (!known) return Status::invalid_argument(text("request ", kind, " is not known"));
  ByteReader reader(payload);
  request.key = text_of(reader.block(kKeyBytesMost));
  if (request.kind == StoreKind::put) request.value = owned(reader.block(kValueBytesMost));
  if (request.kind == StoreKind::collect) request.count = reader.number<uint32_t>();
  if (request.kind != StoreKind::put) request.timeout_ms = reader.number<uint64_t>();
  if (!reader.complete()) return Status::invalid_argument(text("request ", kind, " is cut short or too long"));
  HALAY_RETURN_IF_ERROR(check_key(request.key));
  return request;
}

Result<StoreReply> parse_reply(uint32_t kind, std::span<const std::byte> payload) {
  StoreReply reply;
  reply.kind = static_cast<StoreKind>(kind);
  ByteReader reader(payload);
  if (reply.kind == StoreKind::refused) {
    reply.text = text_of(reader.block(payload.size()));
  } else if (reply.kind == StoreKind::pairs) {
    reply.complete = reader.number<uint8_t>() != 0;
    const auto count = reader.number<uint32_t>();
    // No room is made for a count that is only announced.
    for (uint32_t i = 0; i < count && !reader.failed(); ++i) {
      StorePair pair;
      pair.key = text_of(reader.block(kKeyBytesMost));
      pair.value = owned(reader.block(kValueBytesMost));
      if (!reader.failed()) reply.pairs.push_back(std::move(pair));
    }
  } else if (reply.kind != StoreKind::stored) {
    return Status::invalid_argument(text("reply ", kind, " is not known"));
  }
  if (!reader.complete()) return Status::invalid_argument(text("reply ", kind, " is cut short or too long"));
  return reply;
}

Digest prove(std::string_view job_key, std::string_view who, std::span<const std::byte> server_nonce,
             std::span<const std::byte> client_nonce) {
  ByteWriter message;
  message.bytes(bytes_of(who)).bytes(server_nonce).bytes(client_nonce);
  return hmac_sha256(bytes_of(job_key), message.view());
}

std::string make_job_key() {
  std::byte secret[32];
  random_bytes(secret);
  std::string hex;
  for (const std::byte byte : secret) {
    hex += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
    hex += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
  }
  return hex;
}

}  // namespace halay::rendezvous
