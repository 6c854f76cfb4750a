// The first words on every connection: both sides prove the job's key, then which rank speaks to which, before anything
// else is read. Messages of fixed size, so that nothing of a stranger is parsed (rule 18).
//   connector: hello (magic, nonce)          acceptor: challenge (magic, nonce)
//   connector: proof (ranks, world, MAC)     acceptor: verdict (code, MAC)
// The MACs are HMAC-SHA256 over both nonces, the roles, the ranks and the digest of all addresses.
// Thread: any, one at a time.   Owns: its state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hmac.h"
#include "base/status.h"

namespace halay::transport {

struct HandshakeIdentity {
  std::string key;
  Digest world{};
  int32_t me = 0;
  int32_t size = 1;
};

class Handshake {
 public:
  static Handshake connector(const HandshakeIdentity& identity, int32_t target);
  static Handshake acceptor(const HandshakeIdentity& identity);

  // What is to be sent now; empty if nothing.
  std::vector<std::byte> take_output();
  // Size of the message that is awaited; 0: none.
  size_t awaited_bytes() const;
  // One whole message. Not ok: this connection is refused; output (the reason for the peer) may still be there to be
  // sent.
  Status receive(std::span<const std::byte> message);
  // Both sides have proved themselves.
  bool complete() const { return complete_; }
  // The other side; known once complete.
  int32_t peer() const { return peer_; }

 private:
  enum class Stage : uint8_t { hello, challenge, proof, verdict, over };
  static constexpr size_t kNonceBytes = 16;

  Status receive_challenge(std::span<const std::byte> message);
  Status receive_proof(std::span<const std::byte> message);
  Status receive_verdict(std::span<const std::byte> message);
  Digest mac(std::string_view role, int32_t from, int32_t to, std::span<const std::byte> world) const;
  void output_nonce(std::span<const std::byte> nonce);
  void output_verdict(uint32_t code);

  HandshakeIdentity identity_;
  Stage stage_ = Stage::hello;  // the message that is awaited
  bool complete_ = false;
  int32_t peer_ = -1;
  std::array<std::byte, kNonceBytes> connector_nonce_{}, acceptor_nonce_{};
  std::vector<std::byte> output_;
};

}  // namespace halay::transport
