// A 64-bit hash of bytes, the same on every machine (XXH3). Not for secrets.
// Thread: any (no state).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace halay {

uint64_t hash_bytes(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace halay
