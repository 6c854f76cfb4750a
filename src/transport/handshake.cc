#include "transport/handshake.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"

namespace halay::transport {
namespace {

constexpr uint64_t kMagic = 0x314f'4c4c'4548'4c48;  // "HLHELLO1"
constexpr size_t kMacBytes = sizeof(Digest);
constexpr size_t kHelloBytes = 8 + 16;
constexpr size_t kProofBytes = 4 + 4 + kMacBytes + kMacBytes;
constexpr size_t kVerdictBytes = 4 + kMacBytes;

constexpr uint32_t kWelcome = 0, kWrongKey = 1, kOtherWorld = 2, kOtherRank = 3;

}  // namespace

Handshake Handshake::connector(const HandshakeIdentity& identity, int32_t target) {
  Handshake out;
  out.identity_ = identity;
  out.peer_ = target;
  out.stage_ = Stage::challenge;
  random_bytes(out.connector_nonce_);
  out.output_nonce(out.connector_nonce_);
  return out;
}

Handshake Handshake::acceptor(const HandshakeIdentity& identity) {
  Handshake out;
  out.identity_ = identity;
  out.stage_ = Stage::hello;
  random_bytes(out.acceptor_nonce_);
  return out;
}

std::vector<std::byte> Handshake::take_output() { return std::exchange(output_, {}); }

size_t Handshake::awaited_bytes() const {
  switch (stage_) {
    case Stage::hello:
    case Stage::challenge:
      return kHelloBytes;
    case Stage::proof:
      return kProofBytes;
    case Stage::verdict:
      return kVerdictBytes;
    case Stage::over:
      break;
  }
  return 0;
}

void Handshake::output_nonce(std::span<const std::byte> nonce) {
  ByteWriter out;
  out.number(kMagic).bytes(nonce);
  output_ = out.take();
}

Digest Handshake::mac(std::string_view role, int32_t from, int32_t to, std::span<const std::byte> world) const {
  ByteWriter message;
  message.block(bytes_of(role)).bytes(connector_nonce_).bytes(acceptor_nonce_);
  message.number(static_cast<uint32_t>(from)).number(static_cast<uint32_t>(to)).bytes(world);
  return hmac_sha256(bytes_of(identity_.key), message.view());
}

Status Handshake::receive(std::span<const std::byte> message) {
  HALAY_ASSERT(message.size() == awaited_bytes() && !message.empty());
  switch (std::exchange(stage_, Stage::over)) {
    case Stage::hello: {
      ByteReader reader(message);
      if (reader.number<uint64_t>() != kMagic) return Status::invalid_argument("a connection that is not of halay");
      std::ranges::copy(reader.bytes(kNonceBytes), connector_nonce_.begin());
      output_nonce(acceptor_nonce_);
      stage_ = Stage::proof;
      return {};
    }
    case Stage::challenge:
      return receive_challenge(message);
    case Stage::proof:
      return receive_proof(message);
    case Stage::verdict:
      return receive_verdict(message);
    case Stage::over:
      break;
  }
  return Status::internal("a message after the handshake");
}

Status Handshake::receive_challenge(std::span<const std::byte> message) {
  ByteReader reader(message);
  if (reader.number<uint64_t>() != kMagic) return Status::invalid_argument("what answers there is not halay");
  std::ranges::copy(reader.bytes(kNonceBytes), acceptor_nonce_.begin());
  ByteWriter out;
  out.number(static_cast<uint32_t>(identity_.me)).number(static_cast<uint32_t>(peer_)).bytes(identity_.world);
  out.bytes(mac("connect", identity_.me, peer_, identity_.world));
  output_ = out.take();
  stage_ = Stage::verdict;
  return {};
}

void Handshake::output_verdict(uint32_t code) {
  ByteWriter out;
  out.number(code);
  // A stranger gets no proof: it could be used elsewhere.
  out.bytes(code == kWelcome ? mac("accept", identity_.me, peer_, identity_.world) : Digest{});
  output_ = out.take();
}

Status Handshake::receive_proof(std::span<const std::byte> message) {
  ByteReader reader(message);
  const auto from = static_cast<int32_t>(reader.number<uint32_t>());
  const auto to = static_cast<int32_t>(reader.number<uint32_t>());
  const std::span<const std::byte> world = reader.bytes(kMacBytes);
  const std::span<const std::byte> proof = reader.bytes(kMacBytes);
  if (!same_digest(proof, mac("connect", from, to, world))) {
    output_verdict(kWrongKey);
    return Status::invalid_argument("a connection with another job key was refused");
  }
  if (!same_digest(world, identity_.world)) {
    output_verdict(kOtherWorld);
    return Status::invalid_argument(text("a connection of rank ", from, " of another world was refused"));
  }
  if (to != identity_.me || from <= identity_.me || from >= identity_.size) {
    output_verdict(kOtherRank);
    return Status::invalid_argument(text("a connection of rank ", from, " to rank ", to, " was refused"));
  }
  peer_ = from;
  output_verdict(kWelcome);
  complete_ = true;
  return {};
}

Status Handshake::receive_verdict(std::span<const std::byte> message) {
  ByteReader reader(message);
  const auto code = reader.number<uint32_t>();
  if (code == kWrongKey)
    return Status::invalid_argument(text("rank ", peer_, " refused: its job key is not this rank's"));
  if (code == kOtherWorld) return Status::invalid_argument(text("rank ", peer_, " refused: it builds another world"));
  if (code != kWelcome) return Status::internal("there is another rank");
  if (!same_digest(reader.bytes(kMacBytes), mac("accept", peer_, identity_.me, identity_.world))) {
    return Status::invalid_argument(text("what answers for rank ", peer_, " did not prove the job key"));
  }
  complete_ = true;
  return {};
}

}  // namespace halay::transport
