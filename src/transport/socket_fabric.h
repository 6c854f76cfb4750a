// Ranks of several processes: shared memory between those of one machine, TCP between the others, or as was asked.
// Thread: as Fabric says.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "transport/door_address.h"
#include "transport/fabric.h"

namespace halay::transport {

Result<std::unique_ptr<Door>> open_socket_door(const FabricOptions& options);
// `world` are the decoded addresses.
Result<std::unique_ptr<Fabric>> connect_sockets(std::unique_ptr<Door> door, int32_t rank,
                                                std::span<const std::vector<std::byte>> addresses,
                                                std::vector<DoorAddress> world, const FabricOptions& options);

}  // namespace halay::transport
