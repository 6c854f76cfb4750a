// One way to put a failed system call into words: the stage, the address, and what the system said.
// Thread: any (no state).
#pragma once

#include <string_view>

#include "base/status.h"

namespace halay::net {

// "connect to 10.0.0.1:80: Connection refused". no_memory where descriptors or memory are short, timeout for ETIMEDOUT,
// else peer_lost without a rank (who knows the rank puts it in).
Status system_failure(std::string_view stage, std::string_view address, int error_number);

}  // namespace halay::net
