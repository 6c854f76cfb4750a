#include "transport/inproc.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/text.h"
#include "region/ring.h"
#include "transport/door_address.h"
#include "transport/pair.h"
#include "transport/world_fabric.h"

namespace halay::transport {
namespace {

// Smaller than between processes: a test has many ranks in one process.
constexpr size_t kMostInprocRingBytes = size_t{256} << 10;

struct HeapMemory {
  explicit HeapMemory(size_t bytes)
      : data(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{region::kLineBytes}))) {
    std::memset(data, 0, bytes);
  }
  ~HeapMemory() { ::operator delete(data, std::align_val_t{region::kLineBytes}); }
  HeapMemory(const HeapMemory&) = delete;
  HeapMemory& operator=(const HeapMemory&) = delete;
  std::byte* const data;
};

struct WindowOffer {
  uint64_t lane = 0;
  int32_t from = 0;
  std::shared_ptr<Window> window;
};

// Windows on their way to one rank.
struct Mailbox {
  std::mutex lock;
  std::vector<WindowOffer> offers;
  std::atomic<bool> full{false};
};

struct InprocWorld {
  explicit InprocWorld(size_t size)
      : ring_bytes(std::min(ring_bytes_for(size), kMostInprocRingBytes)),
        bells(size),
        mailboxes(size),
        pairs(size * size) {
    for (auto& mailbox : mailboxes) mailbox = std::make_unique<Mailbox>();
    for (size_t low = 0; low < size; ++low) {
      for (size_t high = low + 1; high < size; ++high) {
        pairs[low * size + high] = std::make_shared<HeapMemory>(pair_bytes_for(ring_bytes));
      }
    }
  }
  const std::shared_ptr<HeapMemory>& pair(int32_t a, int32_t b) const {
    return pairs[static_cast<size_t>(std::min(a, b)) * bells.size() + static_cast<size_t>(std::max(a, b))];
  }
  bool complete() const {
    return std::ranges::all_of(bells, [](const auto& bell) { return bell != nullptr; });
  }

  const size_t ring_bytes;
  std::vector<std::shared_ptr<const region::Doorbell>> bells;  // null: not here yet
  std::vector<std::unique_ptr<Mailbox>> mailboxes;
  std::vector<std::shared_ptr<HeapMemory>> pairs;
};

}  // namespace

class InprocHub {
 public:
  uint64_t next_slot() { return ++slots_; }

  // Blocks until all ranks of this world are here. `key` is the same for them, and for nobody else.
  Result<std::shared_ptr<InprocWorld>> meet(const Digest& key, int32_t rank, size_t size,
                                            std::shared_ptr<const region::Doorbell> bell, Time deadline) {
    std::unique_lock lock(lock_);
    std::shared_ptr<InprocWorld>& place = worlds_[key];
    if (!place) place = std::make_shared<InprocWorld>(size);
    const std::shared_ptr<InprocWorld> world = place;
    world->bells[static_cast<size_t>(rank)] = std::move(bell);
    arrived_.notify_all();
    while (!world->complete()) {
      const Time now = system_clock().now();
      if (now >= deadline) return missing(*world, rank, key);
      arrived_.wait_for(lock, std::chrono::nanoseconds(deadline.ns - now.ns));
    }
    worlds_.erase(key);  // its ranks hold it now
    return world;
  }

 private:
  Status missing(InprocWorld& world, int32_t rank, const Digest& key) {
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < world.bells.size(); ++i) {
      if (!world.bells[i]) ranks.push_back(static_cast<int32_t>(i));
    }
    world.bells[static_cast<size_t>(rank)] = nullptr;
    if (std::ranges::none_of(world.bells, [](const auto& bell) { return bell != nullptr; })) worlds_.erase(key);
    return Status(Code::timeout,
                  text("rank ", rank, ": the world of ", world.bells.size(),
                       " ranks was not complete in time; missing: ranks ", ranks),
                  ranks.size() == 1 ? ranks[0] : -1);
  }

  std::atomic<uint64_t> slots_{0};
  std::mutex lock_;
  std::condition_variable arrived_;
  std::map<Digest, std::shared_ptr<InprocWorld>> worlds_;
};

std::shared_ptr<InprocHub> make_inproc_hub() { return std::make_shared<InprocHub>(); }

namespace {

class InprocDoor final : public Door {
 public:
  InprocDoor(std::shared_ptr<InprocHub> hub, std::vector<std::byte> address)
      : hub(std::move(hub)), address_(std::move(address)) {}
  std::span<const std::byte> address() const override { return address_; }
  const std::shared_ptr<InprocHub> hub;

 private:
  std::vector<std::byte> address_;
};

class InprocFabric final : public WorldFabric {
 public:
  InprocFabric(Place place, std::unique_ptr<Waiter> waiter, std::shared_ptr<InprocWorld> world)
      : WorldFabric(std::move(place), std::move(waiter)), world_(std::move(world)) {
    for (int32_t rank = 0; rank < size(); ++rank) {
      if (rank == place_.rank) continue;
      const std::shared_ptr<HeapMemory>& memory = world_->pair(rank, place_.rank);
      add_peer(rank, std::make_unique<RingPipe>(RingPipe::Parts{"inproc", memory, memory->data, world_->ring_bytes,
                                                                place_.rank < rank ? 0 : 1,
                                                                world_->bells[static_cast<size_t>(rank)]}));
    }
  }

 protected:
  bool look_around() override {
    Mailbox& mailbox = *world_->mailboxes[static_cast<size_t>(place_.rank)];
    if (!mailbox.full.load(std::memory_order_acquire)) return false;
    std::vector<WindowOffer> offers;
    {
      const std::lock_guard lock(mailbox.lock);
      offers.swap(mailbox.offers);
      mailbox.full.store(false, std::memory_order_relaxed);
    }
    for (WindowOffer& offer : offers) windows_.arrived(offer.lane, offer.from, std::move(offer.window));
    return true;
  }

  Result<std::shared_ptr<Window>> make_window() override { return Window::on_heap(place_.window_bytes); }

  void offer_window(uint64_t lane, std::span<const int32_t> ranks, const std::shared_ptr<Window>& window) override {
    for (int32_t to_rank : ranks) {
      if (to_rank == place_.rank) continue;
      Mailbox& mailbox = *world_->mailboxes[static_cast<size_t>(to_rank)];
      {
        const std::lock_guard lock(mailbox.lock);
        mailbox.offers.push_back({lane, place_.rank, window});
        mailbox.full.store(true, std::memory_order_release);
      }
      world_->bells[static_cast<size_t>(to_rank)]->ring();
    }
  }

  Status abandon_memory() override { return {}; }  // it is one process: there is nobody to be safe from

 private:
  const std::shared_ptr<InprocWorld> world_;
};

}  // namespace

Result<std::unique_ptr<Door>> open_inproc_door(const FabricOptions& options) {
  if (!options.hub)
    return Status::invalid_argument("transport 'inproc' needs a hub where the ranks of this process meet");
  DoorAddress address;
  address.little_endian = std::endian::native == std::endian::little;
  address.build_id = options.build_id;
  address.transport = options.transport;
  address.algorithms = options.algorithms;
  address.window_bytes = options.window_bytes;
  address.heartbeat_ms = static_cast<uint64_t>(std::max<int64_t>(options.heartbeat_ms, 0));
  address.machine = "inproc";
  address.process = static_cast<uint32_t>(::getpid());
  address.inproc_slot = options.hub->next_slot();
  return std::unique_ptr<Door>(std::make_unique<InprocDoor>(options.hub, encode(address)));
}

Result<std::unique_ptr<Fabric>> connect_inproc(std::unique_ptr<Door> door, int32_t rank,
                                               std::span<const std::vector<std::byte>> addresses,
                                               const FabricOptions& options) {
  const auto* inproc = dynamic_cast<const InprocDoor*>(door.get());
  HALAY_ASSERT(inproc);
  HALAY_TRY(std::unique_ptr<Waiter> waiter, Waiter::make());
  const Time deadline = system_clock().now().plus_ms(options.connect_timeout_ms);
  // Ranks with different keys do not see each other.
  const Digest world = world_digest(addresses);
  const Digest place_key = hmac_sha256(std::as_bytes(std::span(options.key)), world);
  HALAY_TRY(std::shared_ptr<InprocWorld> met,
            inproc->hub->meet(place_key, rank, addresses.size(), waiter->bell(), deadline));
  WorldFabric::Place place;
  place.rank = rank;
  place.machines.assign(addresses.size(), 0);
  place.window_bytes = options.window_bytes ? options.window_bytes : window_bytes_for(addresses.size());
  return std::unique_ptr<Fabric>(std::make_unique<InprocFabric>(std::move(place), std::move(waiter), std::move(met)));
}

}  // namespace halay::transport
