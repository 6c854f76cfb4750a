// What the launcher's store and its clients say to each other, in frames of net/frame.h. All lengths are checked;
// nothing but the two frames of the proof is looked at before the key is proved.
//   server → client  challenge   its nonce, 32 bytes
//   client → server  proof       own nonce, 32 bytes; HMAC(key, "client" server nonce, client nonce)
//   server → client  welcome     HMAC(key, "server" server nonce, client nonce)
//   client → server  put         key block, value block                        → stored
//                    get         key block, timeout in ms 64 bits              → pairs: one, or none in time
//                    collect     prefix block, count 32 bits, timeout 64 bits  → pairs: `count`, or those there in time
//   server → client  pairs       complete 8 bits, count 32 bits, then key block, value block each
//                    refused     text block; the connection goes on
// block = length 32 bits, bytes. Little-endian.
// Thread: any (no state).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hmac.h"
#include "base/status.h"

namespace halay::rendezvous {

enum class StoreKind : uint32_t {
  challenge = 1,
  proof = 2,
  welcome = 3,
  put = 16,
  get = 17,
  collect = 18,
  stored = 32,
  pairs = 33,
  refused = 34,
};

constexpr size_t kNonceBytes = 32;
constexpr size_t kKeyBytesMost = 256;
constexpr size_t kValueBytesMost = size_t{1} << 20;
constexpr size_t kStoreBytesMost = size_t{256} << 20;             // all keys and values together
constexpr size_t kProofBytesMost = kNonceBytes + sizeof(Digest);  // what an unknown client may send
constexpr size_t kRequestBytesMost = kKeyBytesMost + kValueBytesMost + 64;
constexpr size_t kReplyBytesMost = kStoreBytesMost * 2;

struct StorePair {
  std::string key;
  std::vector<std::byte> value;
  bool operator==(const StorePair&) const = default;
};

struct StoreRequest {
  StoreKind kind = StoreKind::get;
  std::string key;               // or prefix
  std::vector<std::byte> value;  // put
  uint32_t count = 0;            // collect
  uint64_t timeout_ms = 0;       // get, collect
};

struct StoreReply {
  StoreKind kind = StoreKind::refused;
  bool complete = false;  // pairs
  std::vector<StorePair> pairs;
  std::string text;  // refused
};

std::vector<std::byte> encode(const StoreRequest& request);
std::vector<std::byte> encode(const StoreReply& reply);
// invalid_argument says what is wrong with it. Any bytes may come in.
Result<StoreRequest> parse_request(uint32_t kind, std::span<const std::byte> payload);
Result<StoreReply> parse_reply(uint32_t kind, std::span<const std::byte> payload);

// The proof of one side: `who` is "client" or "server".
Digest prove(std::string_view job_key, std::string_view who, std::span<const std::byte> server_nonce,
             std::span<const std::byte> client_nonce);

// A fresh secret for one job: 64 hexadecimal digits, used as text.
std::string make_job_key();

}  // namespace halay::rendezvous
