// Where a rank can be reached and what it is built of, as bytes for the out-of-band exchange. The first fields never
// change their place: ranks of different versions can still tell each other what differs (rule 19).
//
// Thread: any (values).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hmac.h"
#include "base/status.h"

namespace halay::transport {

inline constexpr uint32_t kWireVersion = 1;

struct DoorAddress {
  uint32_t wire_version = kWireVersion;
  // The rest is known only where the version is ours.
  bool little_endian = true;
  std::string build_id;
  std::string transport;
  std::string algorithms;
  uint64_t window_bytes = 0;
  uint64_t heartbeat_ms = 0;
  std::string machine;   // equal: the same machine, and its abstract sockets reach each other
  uint32_t process = 0;  // its number in process_space
  std::string process_space;
  uint64_t inproc_slot = 0;
  std::string local_name;                  // of the abstract Unix socket; empty: none
  std::vector<std::string> tcp_addresses;  // with their port
};

std::vector<std::byte> encode(const DoorAddress& address);
// invalid_argument: not the address of a rank, or cut short.
Result<DoorAddress> decode_door_address(std::span<const std::byte> bytes);

// All addresses of a world, compared: mismatch names the thing, two ranks and both values.
Result<std::vector<DoorAddress>> decode_world(std::span<const std::vector<std::byte>> addresses);
// The same for all ranks of one world, and for no other.
Digest world_digest(std::span<const std::vector<std::byte>> addresses);

// This machine, as far as shared memory and abstract sockets reach.
std::string machine_id();
// Where process numbers mean the same.
std::string process_space_id();

}  // namespace halay::transport
