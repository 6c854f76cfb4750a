// Connects one rank with all others of its world: to each lower rank it connects, from each higher one it is connected.
// Strangers and wrong keys are turned away without holding up the others.
// Thread: one; blocks until the world is built or the deadline.   Owns: nothing after it returned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "net/listener.h"
#include "region/doorbell.h"
#include "transport/conversation.h"
#include "transport/door_address.h"
#include "transport/handshake.h"

namespace halay::transport {

struct MeshPlan {
  std::vector<DoorAddress> world;
  HandshakeIdentity identity;
  bool allow_local = true, allow_tcp = true;
  const UniqueFd* local_listener = nullptr;  // may be null, as may the other
  net::Listener* tcp_listener = nullptr;
  const region::Doorbell* bell = nullptr;
  size_t pair_bytes = 0;
  Time deadline;
};

// One link for each rank; this rank's own is empty. Not ok: names the ranks that did not come, and why where that is
// known.
Result<std::vector<MeshLink>> build_mesh(const MeshPlan& plan);

}  // namespace halay::transport
