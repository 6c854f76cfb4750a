// FakeWorld: N ranks in one process with pipes in memory, for unit tests. Pipes can be small, and cut.
// Thread: a FakeFabric by one thread at a time; several of them side by side.
// Owns: pipes and windows of all ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "transport/fabric.h"
#include "types/schedule.h"

namespace halay::execute {

struct FakeOptions {
  size_t pipe_bytes = 64 * 1024;
  size_t window_bytes = 256 * 1024;
  std::string_view transport = "inproc";
  bool windows = true;
  std::vector<int32_t> machines;  // empty: all on one
};

// One direction between two ranks.
class FakeWire {
 public:
  explicit FakeWire(size_t capacity) : bytes_(capacity) {}

  size_t write(std::span<const std::span<const std::byte>> parts) {
    const std::lock_guard<std::mutex> lock(mutex_);
    size_t written = 0;
    for (const auto& part : parts) {
      if (cut_) return written;
      const size_t count = std::min(part.size(), bytes_.size() - filled_);
      move(
          count, [&](size_t at, size_t done, size_t n) { std::memcpy(bytes_.data() + at, part.data() + done, n); },
          (begin_ + filled_) % bytes_.size());
      filled_ += count;
      written += count;
      if (count < part.size()) break;
    }
    return written;
  }
  size_t read(std::span<std::byte> into) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t count = std::min(into.size(), filled_);
    move(
        count, [&](size_t at, size_t done, size_t n) { std::memcpy(into.data() + done, bytes_.data() + at, n); },
        begin_);
    begin_ = (begin_ + count) % bytes_.size();
    filled_ -= count;
    return count;
  }
  bool ended() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cut_ && filled_ == 0;
  }
  // The writer is gone: what it wrote can still be read.
  void cut() {
    const std::lock_guard<std::mutex> lock(mutex_);
    cut_ = true;
  }

 private:
  // In at most two parts, around the end of the ring.
  template <class Copy>
  void move(size_t count, Copy copy, size_t at) {
    for (size_t done = 0; done < count;) {
      const size_t n = std::min(count - done, bytes_.size() - at);
      copy(at, done, n);
      done += n;
      at = (at + n) % bytes_.size();
    }
  }

  std::mutex mutex_;
  std::vector<std::byte> bytes_;
  size_t begin_ = 0, filled_ = 0;
  bool cut_ = false;
};

class FakePipe : public transport::Pipe {
 public:
  FakePipe(std::string_view transport, FakeWire& out, FakeWire& in) : transport_(transport), out_(out), in_(in) {}
  std::string_view transport() const override { return transport_; }
  size_t write(std::span<const std::span<const std::byte>> parts) override { return out_.write(parts); }
  size_t read(std::span<std::byte> into) override { return in_.read(into); }
  bool ended() override { return in_.ended(); }
  void ring() override {}

 private:
  std::string_view transport_;
  FakeWire& out_;
  FakeWire& in_;
};

struct FakeWindow {
  explicit FakeWindow(size_t window_bytes) : bytes(window_bytes + 256 + kFlagCount * 128 + 128) {
    void* begin = bytes.data();
    size_t room = bytes.size();
    std::align(128, bytes.size() - 128, begin, room);
    view.lines = static_cast<std::byte*>(begin);
    view.flags = view.lines + 256;
    view.data = view.lines + 256 + kFlagCount * 128;
  }
  std::vector<std::byte> bytes;
  transport::WindowView view;
};

class FakeWorld;

class FakeFabric : public transport::Fabric {
 public:
  FakeFabric(FakeWorld& world, int32_t rank);
  int32_t rank() const override { return rank_; }
  int32_t size() const override;
  int32_t machine_of(int32_t rank) const override;
  transport::Channel* channel(int32_t rank) override { return channels_[static_cast<size_t>(rank)].get(); }
  bool windows_possible(std::span<const int32_t>) const override;
  Status open_windows(uint64_t, std::span<const int32_t>) override { return Status(); }
  bool windows_ready(uint64_t) override { return true; }
  transport::WindowView window(uint64_t lane, int32_t rank) override;
  size_t window_bytes() const override;
  void close_windows(uint64_t) override {}
  void announce(uint64_t) override { ++announced; }
  bool progress(transport::FrameSink& sink, Time) override {
    bool moved = false;
    for (const auto& channel : channels_) {
      if (channel == nullptr) continue;
      moved |= channel->progress(sink);
      if (status_.ok() && !channel->status().ok()) status_ = channel->status();
    }
    return moved;
  }
  const Status& status() const override { return status_; }
  Time next_deadline() const override { return Time::never(); }
  void set_progress(uint64_t) override {}
  bool prepare_wait() override { return false; }
  void wait(Time) override {}
  void end_wait() override {}
  void wake() override {}
  void abandon() override {}

  uint64_t announced = 0;

 private:
  FakeWorld& world_;
  int32_t rank_;
  std::vector<std::unique_ptr<transport::Channel>> channels_;
  Status status_;
};

class FakeWorld {
 public:
  explicit FakeWorld(int32_t size, FakeOptions options = {}) : options_(std::move(options)) {
    for (int32_t i = 0; i < size * size; ++i) wires_.push_back(std::make_unique<FakeWire>(options_.pipe_bytes));
    size_ = size;
    for (int32_t rank = 0; rank < size; ++rank) fabrics_.push_back(std::make_unique<FakeFabric>(*this, rank));
  }

  int32_t size() const { return size_; }
  const FakeOptions& options() const { return options_; }
  FakeFabric& fabric(int32_t rank) { return *fabrics_[static_cast<size_t>(rank)]; }
  FakeWire& wire(int32_t from, int32_t to) { return *wires_[static_cast<size_t>(from * size_ + to)]; }
  // All that `rank` still wanted to say is lost, and the others see its end.
  void kill(int32_t rank) {
    for (int32_t to = 0; to < size_; ++to) wire(rank, to).cut();
  }
  transport::WindowView window(uint64_t lane, int32_t rank) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& window = windows_[{lane, rank}];
    if (window == nullptr) window = std::make_unique<FakeWindow>(options_.window_bytes);
    return window->view;
  }

 private:
  FakeOptions options_;
  int32_t size_ = 0;
  std::vector<std::unique_ptr<FakeWire>> wires_;
  std::vector<std::unique_ptr<FakeFabric>> fabrics_;
  std::mutex mutex_;
  std::map<std::pair<uint64_t, int32_t>, std::unique_ptr<FakeWindow>> windows_;
};

inline FakeFabric::FakeFabric(FakeWorld& world, int32_t rank) : world_(world), rank_(rank) {
  for (int32_t peer = 0; peer < world.size(); ++peer) {
    if (peer == rank) {
      channels_.push_back(nullptr);
      continue;
    }
    auto pipe = std::make_unique<FakePipe>(world.options().transport, world.wire(rank, peer), world.wire(peer, rank));
    channels_.push_back(std::make_unique<transport::Channel>(peer, std::move(pipe)));
  }
}
inline int32_t FakeFabric::size() const { return world_.size(); }
inline int32_t FakeFabric::machine_of(int32_t rank) const {
  const std::vector<int32_t>& machines = world_.options().machines;
  return machines.empty() ? 0 : machines[static_cast<size_t>(rank)];
}
inline bool FakeFabric::windows_possible(std::span<const int32_t>) const { return world_.options().windows; }
inline transport::WindowView FakeFabric::window(uint64_t lane, int32_t rank) { return world_.window(lane, rank); }
inline size_t FakeFabric::window_bytes() const { return world_.options().window_bytes; }

}  // namespace halay::execute
