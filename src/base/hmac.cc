#include "base/hmac.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace halay {
namespace {

constexpr size_t kBlockBytes = 64;

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes) {
    total_bytes_ += bytes.size();
    while (!bytes.empty()) {
      const size_t part = std::min(kBlockBytes - filled_, bytes.size());
      std::memcpy(block_.data() + filled_, bytes.data(), part);
      filled_ += part;
      bytes = bytes.subspan(part);
      if (filled_ == kBlockBytes) compress();
    }
  }

  Digest finish() {
    const uint64_t total_bits = total_bytes_ * 8;
    const std::byte one{0x80}, zero{0};
    update({&one, 1});
    while (filled_ != kBlockBytes - 8) update({&zero, 1});
    std::array<std::byte, 8> length;
    for (size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(total_bits >> (56 - 8 * i));
    update(length);
    Digest digest;
    for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  void compress() {
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (size_t j = 0; j < 4; ++j) w[i] = w[i] << 8 | std::to_integer<uint32_t>(block_[4 * i + j]);
    }
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> add = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state_[i] += add[i];
    filled_ = 0;
  }

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> block_{};
  size_t filled_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace

Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  std::array<std::byte, kBlockBytes> padded{};
  if (key.size() > kBlockBytes) {
    const Digest shorter = sha256(key);
    std::copy(shorter.begin(), shorter.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  std::array<std::byte, kBlockBytes> inner, outer;
  for (size_t i = 0; i < kBlockBytes; ++i) {
    inner[i] = padded[i] ^ std::byte{0x36};
    outer[i] = padded[i] ^ std::byte{0x5c};
  }
  Sha256 first;
  first.update(inner);
  first.update(message);
  const Digest middle = first.finish();
  Sha256 second;
  second.update(outer);
  second.update(middle);
  return second.finish();
}

bool same_digest(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  std::byte difference{0};
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

void random_bytes(std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::getrandom(into.data(), into.size(), 0);
    HALAY_ASSERT(got > 0 || errno == EINTR);
    if (got > 0) into = into.subspan(static_cast<size_t>(got));
  }
}

}  // namespace halay
