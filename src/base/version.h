// The version of halay, as CMakeLists.txt has it. Thread: any.
#pragma once

#include <string_view>

namespace halay {
std::string_view version();
}  // namespace halay
