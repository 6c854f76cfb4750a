#include "transport/socket_fabric.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "net/interfaces.h"
#include "net/listener.h"
#include "region/local_socket.h"
#include "transport/mesh.h"
#include "transport/pair.h"
#include "transport/world_fabric.h"

namespace halay::transport {
namespace {

constexpr size_t kOfferBytes = 1 + 8 + 8;
constexpr std::byte kOffer{'W'};
constexpr size_t kEventsAtOnce = 64;

class SocketDoor final : public Door {
 public:
  std::span<const std::byte> address() const override { return bytes; }
  region::LocalListener local;
  std::optional<net::Listener> tcp;
  std::vector<std::byte> bytes;
};

// What an event of the sockets' epoll is about.
enum class Watched : uint8_t { stream, local, process };
uint64_t tag_of(int32_t rank, Watched what) { return static_cast<uint64_t>(rank) << 8 | static_cast<uint64_t>(what); }

class SocketFabric final : public WorldFabric {
 public:
  SocketFabric(Place place, std::unique_ptr<Waiter> waiter)
      : WorldFabric(std::move(place), std::move(waiter)), near_(place_.machines.size()) {}

  Status add_links(std::vector<MeshLink> links, size_t ring_bytes) {
    for (int32_t rank = 0; rank < size(); ++rank) {
      if (rank != place_.rank)
        HALAY_RETURN_IF_ERROR(add_link(rank, std::move(links[static_cast<size_t>(rank)]), ring_bytes));
    }
    return {};
  }

 protected:
  bool look_around() override;
  Result<std::shared_ptr<Window>> make_window() override;
  void offer_window(uint64_t lane, std::span<const int32_t> ranks, const std::shared_ptr<Window>& window) override;
  Status abandon_memory() override;

 private:
  // A peer that shares memory with this rank, and the process of any peer of this machine.
  struct Near {
    UniqueFd local_socket, process_watch;
    std::shared_ptr<region::Segment> memory;
    std::deque<uint64_t> offers;  // lanes whose window it has not got yet
  };

  Status add_link(int32_t rank, MeshLink link, size_t ring_bytes);
  bool handle(const SocketEvent& event);
  bool read_local(int32_t rank);
  void take_offer(int32_t rank, region::LocalMessage& message);
  void send_offers(int32_t rank);
  void gone(int32_t rank);

  std::vector<Near> near_;
};

Status SocketFabric::add_link(int32_t rank, MeshLink link, size_t ring_bytes) {
  Near& near = near_[static_cast<size_t>(rank)];
  near.process_watch = std::move(link.process_watch);
  if (near.process_watch) {
    HALAY_RETURN_IF_ERROR(waiter_->watch(near.process_watch.get(), tag_of(rank, Watched::process)));
  }
  if (link.stream) {
    auto pipe = std::make_unique<TcpPipe>(std::move(link.stream));
    HALAY_RETURN_IF_ERROR(waiter_->watch(pipe->descriptor(), tag_of(rank, Watched::stream)));
    add_peer(rank, std::move(pipe));
    return {};
  }
  near.local_socket = std::move(link.local_socket);
  near.memory = std::make_shared<region::Segment>(std::move(link.segment));
  HALAY_RETURN_IF_ERROR(waiter_->watch(near.local_socket.get(), tag_of(rank, Watched::local)));
  add_peer(rank, std::make_unique<RingPipe>(
                     RingPipe::Parts{"shm", near.memory, near.memory->data(), ring_bytes, place_.rank < rank ? 0 : 1,
                                     std::make_shared<const region::Doorbell>(std::move(link.peer_bell))}));
  return {};
}

bool SocketFabric::look_around() {
  bool came = false;
  std::array<SocketEvent, kEventsAtOnce> events;
  size_t count = 0;
  do {
    count = waiter_->look(events);
    for (size_t i = 0; i < count; ++i) came |= handle(events[i]);
  } while (count == events.size());
  return came;
}

bool SocketFabric::handle(const SocketEvent& event) {
  const auto rank = static_cast<int32_t>(event.tag >> 8);
  switch (static_cast<Watched>(event.tag & 0xff)) {
    case Watched::stream: {
      TcpPipe& pipe = *peer(rank).tcp;
      if (event.readable) pipe.became_readable(event.hung_up);
      if (event.writable) pipe.became_writable();
      return false;  // the channel says whether anything moved
    }
    case Watched::local:
      if (event.writable) send_offers(rank);
      return event.readable && read_local(rank);
    case Watched::process:
      gone(rank);
      return true;
  }
  return false;
}

void SocketFabric::gone(int32_t rank) {
  if (RingPipe* ring = peer(rank).ring) ring->peer_gone();
  if (TcpPipe* tcp = peer(rank).tcp) tcp->peer_gone();
}

bool SocketFabric::read_local(int32_t rank) {
  bool came = false;
  Near& near = near_[static_cast<size_t>(rank)];
  region::LocalMessage message;
  while (near.local_socket) {
    switch (region::receive_local(near.local_socket.get(), kOfferBytes, message)) {
      case region::Passing::would_block:
        return came;
      case region::Passing::done:
        take_offer(rank, message);
        break;
      case region::Passing::ended:
        waiter_->forget(near.local_socket.get());
        near.local_socket.reset();
        gone(rank);
        break;
    }
    came = true;
  }
  return came;
}

void SocketFabric::take_offer(int32_t rank, region::LocalMessage& message) {
  ByteReader reader(message.bytes);
  const bool is_offer = reader.number<uint8_t>() == static_cast<uint8_t>(kOffer);
  const auto lane = reader.number<uint64_t>();
  const auto bytes = reader.number<uint64_t>();
  const size_t expected = Window::bytes_for(place_.window_bytes);
  if (!is_offer || !reader.complete() || message.descriptors.size() != 1 || bytes != expected) {
    return fail(Status::internal(text("rank ", rank, " offered a window in a way that is not understood")));
  }
  Result<region::Segment> segment = region::Segment::map(std::move(message.descriptors[0]), expected);
  if (!segment.ok()) return fail(segment.status());
  segment.value().close_descriptor();
  Result<std::shared_ptr<Window>> window = Window::in_segment(std::move(segment).value());
  windows_.arrived(lane, rank, std::move(window).value());
}

Result<std::shared_ptr<Window>> SocketFabric::make_window() {
  HALAY_TRY(region::Segment segment, region::Segment::create("halay-window", Window::bytes_for(place_.window_bytes)));
  return Window::in_segment(std::move(segment));
}

void SocketFabric::offer_window(uint64_t lane, std::span<const int32_t> ranks, const std::shared_ptr<Window>&) {
  for (int32_t rank : ranks) {
    if (rank != place_.rank) near_[static_cast<size_t>(rank)].offers.push_back(lane);
  }
  for (int32_t rank : ranks) {
    if (rank != place_.rank) send_offers(rank);
  }
}

void SocketFabric::send_offers(int32_t rank) {
  Near& near = near_[static_cast<size_t>(rank)];
  while (near.local_socket && !near.offers.empty()) {
    const uint64_t lane = near.offers.front();
    // Not there: closed meanwhile.
    const std::shared_ptr<Window> window = windows_.find(lane, place_.rank);
    if (window && window->segment().descriptor() >= 0) {
      ByteWriter offer;
      offer.bytes({&kOffer, 1}).number(lane).number(uint64_t{window->segment().size()});
      const int descriptor = window->segment().descriptor();
      if (region::send_local(near.local_socket.get(), offer.view(), {&descriptor, 1}) == region::Passing::would_block)
        return;
    }
    near.offers.pop_front();
    const bool wanted = std::ranges::any_of(
        near_, [lane](const Near& other) { return std::ranges::find(other.offers, lane) != other.offers.end(); });
    if (window && !wanted) window->segment().close_descriptor();
  }
}

Status SocketFabric::abandon_memory() {
  for (Near& near : near_) {
    if (near.memory) HALAY_RETURN_IF_ERROR(near.memory->make_private());
  }
  return {};
}

size_t count_near(std::span<const DoorAddress> world, int32_t rank) {
  const std::string& machine = world[static_cast<size_t>(rank)].machine;
  return static_cast<size_t>(
      std::ranges::count_if(world, [&](const DoorAddress& address) { return address.machine == machine; }));
}

}  // namespace

Result<std::unique_ptr<Door>> open_socket_door(const FabricOptions& options) {
  auto door = std::make_unique<SocketDoor>();
  DoorAddress address;
  address.little_endian = std::endian::native == std::endian::little;
  address.build_id = options.build_id;
  address.transport = options.transport;
  address.algorithms = options.algorithms;
  address.window_bytes = options.window_bytes;
  address.heartbeat_ms = static_cast<uint64_t>(std::max<int64_t>(options.heartbeat_ms, 0));
  address.machine = machine_id();
  address.process = static_cast<uint32_t>(::getpid());
  address.process_space = process_space_id();
  if (options.transport != "tcp") {
    Result<region::LocalListener> local = region::listen_local();
    if (!local.ok() && options.transport == "shm") return local.status();
    if (local.ok()) door->local = std::move(local).value();
    address.local_name = door->local.name;
  }
  if (options.transport != "shm") {
    HALAY_TRY(const std::vector<net::InterfaceAddress> offered, net::local_addresses(options.interfaces));
    HALAY_TRY(door->tcp, net::Listener::open_all());
    for (const net::InterfaceAddress& at : offered) {
      if (at.address.family() == AF_INET6 && door->tcp->address().family() != AF_INET6) continue;
      address.tcp_addresses.push_back(at.address.with_port(door->tcp->port()).text());
    }
  }
  door->bytes = encode(address);
  return std::unique_ptr<Door>(std::move(door));
}

Result<std::unique_ptr<Fabric>> connect_sockets(std::unique_ptr<Door> door, int32_t rank,
                                                std::span<const std::vector<std::byte>> addresses,
                                                std::vector<DoorAddress> world, const FabricOptions& options) {
  auto* sockets = dynamic_cast<SocketDoor*>(door.get());
  HALAY_ASSERT(sockets);
  HALAY_TRY(std::unique_ptr<Waiter> waiter, Waiter::make());
  const size_t near_count = count_near(world, rank);
  const size_t ring_bytes = ring_bytes_for(near_count);
  MeshPlan plan;
  plan.identity = {options.key, world_digest(addresses), rank, static_cast<int32_t>(addresses.size())};
  plan.allow_local = options.transport != "tcp";
  plan.allow_tcp = options.transport != "shm";
  plan.local_listener = sockets->local.socket ? &sockets->local.socket : nullptr;
  plan.tcp_listener = sockets->tcp ? &*sockets->tcp : nullptr;
  plan.bell = waiter->bell().get();
  plan.pair_bytes = pair_bytes_for(ring_bytes);
  plan.deadline = system_clock().now().plus_ms(options.connect_timeout_ms);

  WorldFabric::Place place;
  place.rank = rank;
  std::vector<std::string> machines;
  size_t most_near = 1;
  for (size_t i = 0; i < world.size(); ++i) {
    machines.push_back(world[i].machine);
    most_near = std::max(most_near, count_near(world, static_cast<int32_t>(i)));
  }
  place.machines = number_machines(machines);
  place.window_bytes = options.window_bytes ? options.window_bytes : window_bytes_for(most_near);
  place.heartbeat_ms = options.heartbeat_ms;

  plan.world = std::move(world);
  HALAY_TRY(std::vector<MeshLink> links, build_mesh(plan));
  auto fabric = std::make_unique<SocketFabric>(std::move(place), std::move(waiter));
  HALAY_RETURN_IF_ERROR(fabric->add_links(std::move(links), ring_bytes));
  return std::unique_ptr<Fabric>(std::move(fabric));
}

}  // namespace halay::transport
