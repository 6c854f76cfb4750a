// Bytes of the control messages of one process set; docs/wire.md draws them. Tensor names travel as text, in the
// process they are numbers of its NameTable. Thread: any (no state).   Owns: nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/name_table.h"
#include "base/status.h"
#include "types/control_message.h"

namespace halay::wire {

inline constexpr uint8_t kControlVersion = 1;

// Append to `out`.
void encode(const Announcement& message, const NameTable& names, std::vector<std::byte>& out);
void encode(const ListMessage& message, const NameTable& names, std::vector<std::byte>& out);

// `internal`, with what is wrong and where, for anything that encode() for a set of `set_size` members cannot have
// made. On failure `out` is left in some valid state. Reuses the memory of `out`.
Status decode(std::span<const std::byte> bytes, int set_size, NameTable& names, Announcement& out);
Status decode(std::span<const std::byte> bytes, int set_size, NameTable& names, ListMessage& out);

}  // namespace halay::wire
