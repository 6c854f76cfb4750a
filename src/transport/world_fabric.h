// What the fabrics of all transports have in common: channels, windows, liveness, sleep and wake.
// Thread: as Fabric says.   Owns: channels, windows, the sleeping place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/channel.h"
#include "transport/fabric.h"
#include "transport/ring_pipe.h"
#include "transport/tcp_pipe.h"
#include "transport/waiter.h"
#include "transport/windows.h"

namespace halay::transport {

// Index of the machine of each rank: 0 for rank 0's, then by first appearance.
std::vector<int32_t> number_machines(std::span<const std::string> machines);

class WorldFabric : public Fabric {
 public:
  struct Place {
    int32_t rank = 0;
    std::vector<int32_t> machines;  // by rank
    size_t window_bytes = 0;
    int64_t heartbeat_ms = 0;  // of TCP peers; 0: none
  };

  int32_t rank() const override { return place_.rank; }
  int32_t size() const override { return static_cast<int32_t>(place_.machines.size()); }
  int32_t machine_of(int32_t rank) const override { return place_.machines[static_cast<size_t>(rank)]; }
  Channel* channel(int32_t rank) override { return peers_[static_cast<size_t>(rank)].channel.get(); }

  bool windows_possible(std::span<const int32_t> ranks) const override;
  Status open_windows(uint64_t lane, std::span<const int32_t> ranks) override;
  bool windows_ready(uint64_t lane) override { return windows_.ready(lane); }
  WindowView window(uint64_t lane, int32_t rank) override { return windows_.view(lane, rank); }
  size_t window_bytes() const override { return place_.window_bytes; }
  void close_windows(uint64_t lane) override { windows_.close(lane); }
  void announce(uint64_t lane) override;

  bool progress(FrameSink& sink, Time now) override;
  const Status& status() const override { return status_; }
  Time next_deadline() const override;
  void set_progress(uint64_t operations) override { operations_ = operations; }

  bool prepare_wait() override;
  void wait(Time deadline) override { waiter_->wait(deadline); }
  void end_wait() override;
  void wake() override { waiter_->wake(); }
  void abandon() override;

 protected:
  struct Peer {
    std::unique_ptr<Channel> channel;  // null: this rank
    RingPipe* ring = nullptr;          // the channel's pipe, as one or the other
    TcpPipe* tcp = nullptr;
    Time heard_at, spoke_at;  // TCP only
    uint64_t heard_bytes = 0, spoke_frames = 0;
  };

  WorldFabric(Place place, std::unique_ptr<Waiter> waiter);
  void add_peer(int32_t rank, std::unique_ptr<RingPipe> pipe);
  void add_peer(int32_t rank, std::unique_ptr<TcpPipe> pipe);
  void fail(Status status);
  Peer& peer(int32_t rank) { return peers_[static_cast<size_t>(rank)]; }

  // Looks after what is not a ring: sockets, deaths, windows that arrive. True if anything came.
  virtual bool look_around() = 0;
  virtual Result<std::shared_ptr<Window>> make_window() = 0;
  // To all of `ranks` but this one.
  virtual void offer_window(uint64_t lane, std::span<const int32_t> ranks, const std::shared_ptr<Window>& window) = 0;
  virtual Status abandon_memory() = 0;

  const Place place_;
  const std::unique_ptr<Waiter> waiter_;
  Windows windows_;

 private:
  bool progress_peer(int32_t rank, FrameSink& sink, Time now);
  void keep_alive(int32_t rank, Time now);

  std::vector<Peer> peers_;
  Status status_;
  uint64_t operations_ = 0;
  bool any_tcp_ = false, abandoned_ = false, look_now_ = true;
  Time look_at_;
};

}  // namespace halay::transport
