// The number of a tensor name in this process (base/name_table.h); never sent. Thread: any (value).
#pragma once

#include <cstdint>

namespace halay {
enum class NameId : uint32_t {};
}  // namespace halay
