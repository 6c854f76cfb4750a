// Ranks of one process: they meet in a hub and share heap memory, so that a sanitizer sees all of it.
// Thread: as Fabric and the hub say.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "transport/fabric.h"

namespace halay::transport {

Result<std::unique_ptr<Door>> open_inproc_door(const FabricOptions& options);
Result<std::unique_ptr<Fabric>> connect_inproc(std::unique_ptr<Door> door, int32_t rank,
                                               std::span<const std::vector<std::byte>> addresses,
                                               const FabricOptions& options);

}  // namespace halay::transport
