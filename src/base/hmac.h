// SHA-256 and HMAC-SHA256 (FIPS 180-4, RFC 2104), for proofs that two processes hold the key of one job.
// Thread: any (no state).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace halay {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte> bytes);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);
// In time that does not depend on where they differ.
bool same_digest(std::span<const std::byte> a, std::span<const std::byte> b);
// Fills from the kernel's random source.
void random_bytes(std::span<std::byte> into);

}  // namespace halay
