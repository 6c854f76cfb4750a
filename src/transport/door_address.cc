#include "transport/door_address.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>

#include "base/bytes.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace halay::transport {
namespace {

constexpr uint64_t kMagic = 0x524f'4f44'594c'4148;  // "HALYDOOR"
constexpr size_t kMostText = 4096;
constexpr size_t kMostAddresses = 1024;

std::string read_small_file(const char* path) {
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  char content[256];
  const ssize_t got = file ? ::read(file.get(), content, sizeof content) : 0;
  std::string out(content, got > 0 ? static_cast<size_t>(got) : 0);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string link_text(const char* path) {
  char content[256];
  const ssize_t got = ::readlink(path, content, sizeof content);
  return std::string(content, got > 0 ? static_cast<size_t>(got) : 0);
}

std::string text_field(ByteReader& reader) { return std::string(text_of(reader.block(kMostText))); }

template <typename Field>
Status compare(std::span<const DoorAddress> world, std::string_view thing, Field field) {
  for (size_t rank = 1; rank < world.size(); ++rank) {
    if (field(world[rank]) == field(world[0])) continue;
    return Status::mismatch(text("the ranks do not fit together: ", thing, " is ", field(world[0]), " on rank 0 and ",
                                 field(world[rank]), " on rank ", rank));
  }
  return {};
}

}  // namespace

std::string machine_id() {
  return text(read_small_file("/proc/sys/kernel/random/boot_id"), " ", link_text("/proc/self/ns/net"), " uid ",
              static_cast<uint64_t>(::getuid()));
}

std::string process_space_id() { return link_text("/proc/self/ns/pid"); }

std::vector<std::byte> encode(const DoorAddress& address) {
  ByteWriter out;
  out.number(kMagic).number(address.wire_version);
  out.number(static_cast<uint8_t>(address.little_endian ? 1 : 0));
  out.block(bytes_of(address.build_id)).block(bytes_of(address.transport)).block(bytes_of(address.algorithms));
  out.number(address.window_bytes).number(address.heartbeat_ms);
  out.block(bytes_of(address.machine)).number(address.process);
  out.block(bytes_of(address.process_space)).number(address.inproc_slot);
  out.block(bytes_of(address.local_name));
  out.number(static_cast<uint32_t>(address.tcp_addresses.size()));
  for (const std::string& tcp : address.tcp_addresses) out.block(bytes_of(tcp));
  return out.take();
}

Result<DoorAddress> decode_door_address(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  DoorAddress out;
  if (reader.number<uint64_t>() != kMagic) return Status::invalid_argument("not the address of a rank of halay");
  out.wire_version = reader.number<uint32_t>();
  if (reader.failed()) return Status::invalid_argument("the address of a rank, cut short");
  if (out.wire_version != kWireVersion) return out;
  out.little_endian = reader.number<uint8_t>() != 0;
  out.build_id = text_field(reader);
  out.transport = text_field(reader);
  out.algorithms = text_field(reader);
  out.window_bytes = reader.number<uint64_t>();
  out.heartbeat_ms = reader.number<uint64_t>();
  out.machine = text_field(reader);
  out.process = reader.number<uint32_t>();
  out.process_space = text_field(reader);
  out.inproc_slot = reader.number<uint64_t>();
  out.local_name = text_field(reader);
  const auto count = reader.number<uint32_t>();
  if (count > kMostAddresses) return Status::invalid_argument(text("the address of a rank with ", count, " addresses"));
  for (uint32_t i = 0; i < count && !reader.failed(); ++i) out.tcp_addresses.push_back(text_field(reader));
  if (!reader.complete()) return Status::invalid_argument("the address of a rank, cut short or too long");
  return out;
}

Result<std::vector<DoorAddress>> decode_world(std::span<const std::vector<std::byte>> addresses) {
  std::vector<DoorAddress> world;
  for (const std::vector<std::byte>& bytes : addresses) {
    Result<DoorAddress> address = decode_door_address(bytes);
    if (!address.ok()) return Status::invalid_argument(text("rank ", world.size(), ": ", address.status().text()));
    world.push_back(std::move(address).value());
  }
  HALAY_RETURN_IF_ERROR(compare(world, "the wire version", [](const DoorAddress& a) { return a.wire_version; }));
  for (size_t rank = 0; rank < world.size(); ++rank) {
    if (world[rank].wire_version == kWireVersion) continue;
    return Status::mismatch(
        text("rank ", rank, " has wire version ", world[rank].wire_version, ", this one ", kWireVersion));
  }
  HALAY_RETURN_IF_ERROR(compare(world, "the byte order", [](const DoorAddress& a) {
    return std::string_view(a.little_endian ? "little-endian" : "big-endian");
  }));
  HALAY_RETURN_IF_ERROR(compare(world, "the build", [](const DoorAddress& a) { return "'" + a.build_id + "'"; }));
  HALAY_RETURN_IF_ERROR(compare(world, "the transport", [](const DoorAddress& a) { return "'" + a.transport + "'"; }));
  HALAY_RETURN_IF_ERROR(
      compare(world, "the choice of algorithms", [](const DoorAddress& a) { return "'" + a.algorithms + "'"; }));
  HALAY_RETURN_IF_ERROR(
      compare(world, "the window size in bytes", [](const DoorAddress& a) { return a.window_bytes; }));
  HALAY_RETURN_IF_ERROR(compare(world, "the heartbeat in ms", [](const DoorAddress& a) { return a.heartbeat_ms; }));
  return world;
}

Digest world_digest(std::span<const std::vector<std::byte>> addresses) {
  ByteWriter all;
  for (const std::vector<std::byte>& address : addresses) all.block(address);
  return sha256(all.view());
}

}  // namespace halay::transport
