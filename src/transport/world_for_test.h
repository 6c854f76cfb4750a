// Test code: a world of N ranks in one process, over any transport, and a sink that keeps what it gets.
// Thread: one; connect() makes and joins its own.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "transport/fabric.h"

namespace halay::transport {

struct KeptFrame {
  int32_t rank;
  FrameKind kind;
  uint64_t lane;
  std::string payload;
};

class KeepingSink final : public FrameSink {
 public:
  void on_frame(int32_t rank, FrameKind kind, uint64_t lane, std::span<const std::byte> payload) override {
    frames.push_back({rank, kind, lane, std::string(text_of(payload))});
  }
  std::vector<KeptFrame> frames;
};

struct TestWorld {
  std::vector<std::unique_ptr<Fabric>> fabrics;  // null where connect() failed
  std::vector<Status> statuses;
  std::vector<std::unique_ptr<KeepingSink>> sinks;

  Fabric& operator[](size_t rank) { return *fabrics[rank]; }

  // Drives all ranks in turn until `done` or ten seconds have passed.
  template <typename Done>
  bool drive(Done done) {
    const Time end = system_clock().now().plus_ms(50'000);
    while (!done()) {
      const Time now = system_clock().now();
      if (now > end) return false;
      bool moved = false;
      for (size_t rank = 0; rank < fabrics.size(); ++rank) {
        if (fabrics[rank]) moved |= fabrics[rank]->progress(*sinks[rank], now);
      }
      if (!moved) std::this_thread::yield();
    }
    return true;
  }
};

inline FabricOptions test_options(const std::string& transport) {
  FabricOptions options;
  options.transport = transport;
  options.key = "the key of this test";
  options.build_id = "test build";
  options.connect_timeout_ms = 20'000;
  options.window_bytes = 64 << 10;
  return options;
}

// `change` may alter the addresses before they are exchanged, and the options of each rank before connecting.
template <typename Change>
TestWorld connect_world(const FabricOptions& base, size_t size, Change change) {
  std::vector<FabricOptions> options(size, base);
  if (base.transport == "inproc") {
    const auto hub = make_inproc_hub();
    for (auto& each : options) each.hub = hub;
  }
  std::vector<std::unique_ptr<Door>> doors;
  std::vector<std::vector<std::byte>> addresses;
  for (size_t rank = 0; rank < size; ++rank) {
    doors.push_back(open_door(options[rank]).value());
    addresses.emplace_back(doors.back()->address().begin(), doors.back()->address().end());
  }
  change(options, addresses);
  TestWorld world;
  world.fabrics.resize(size);
  world.statuses.resize(size);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < size; ++rank) {
    world.sinks.push_back(std::make_unique<KeepingSink>());
    threads.emplace_back([&, rank] {
      auto fabric = connect(std::move(doors[rank]), static_cast<int32_t>(rank), addresses, options[rank]);
      if (fabric.ok()) {
        world.fabrics[rank] = std::move(fabric).value();
      } else {
        world.statuses[rank] = fabric.status();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return world;
}

inline TestWorld connect_world(const std::string& transport, size_t size) {
  return connect_world(test_options(transport), size, [](auto&, auto&) {});
}

inline size_t open_descriptors() {
  size_t count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (directory && ::readdir(directory)) ++count;
  if (directory) ::closedir(directory);
  return count;
}

inline std::vector<std::byte> test_bytes(size_t count, size_t seed) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>((i * 7 + i / 253 + seed * 31) & 0xff);
  return out;
}

}  // namespace halay::transport
