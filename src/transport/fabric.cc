#include "transport/fabric.h"

#include <utility>

#include "base/text.h"
#include "transport/door_address.h"
#include "transport/inproc.h"
#include "transport/socket_fabric.h"

namespace halay::transport {

Result<std::unique_ptr<Door>> open_door(const FabricOptions& options) {
  if (options.transport == "inproc") return open_inproc_door(options);
  if (options.transport == "auto" || options.transport == "shm" || options.transport == "tcp") {
    return open_socket_door(options);
  }
  return Status::invalid_argument(
      text("transport '", options.transport, "' is not known; allowed are auto, shm, tcp and inproc"));
}

Result<std::unique_ptr<Fabric>> connect(std::unique_ptr<Door> door, int32_t rank,
                                        std::span<const std::vector<std::byte>> addresses,
                                        const FabricOptions& options) {
  if (rank < 0 || static_cast<size_t>(rank) >= addresses.size()) {
    return Status::invalid_argument(text("rank ", rank, " in a world of ", addresses.size(), " ranks"));
  }
  HALAY_TRY(std::vector<DoorAddress> world, decode_world(addresses));
  const std::vector<std::byte>& mine = addresses[static_cast<size_t>(rank)];
  if (!std::equal(mine.begin(), mine.end(), door->address().begin(), door->address().end())) {
    return Status::invalid_argument(text("the address given for rank ", rank, " is not the one of this process"));
  }
  if (options.transport == "inproc") return connect_inproc(std::move(door), rank, addresses, options);
  return connect_sockets(std::move(door), rank, addresses, std::move(world), options);
}

}  // namespace halay::transport
