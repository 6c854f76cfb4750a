#include "transport/world_fabric.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "region/sleep.h"

namespace halay::transport {
namespace {

// Where only rings are in use, sockets (deaths, windows) are looked at so often while somebody drives.
constexpr int64_t kLookEveryUs = 500;

bool open(const Channel& channel) { return channel.status().ok(); }

}  // namespace

std::vector<int32_t> number_machines(std::span<const std::string> machines) {
  std::vector<std::string> seen;
  std::vector<int32_t> out;
  for (const std::string& machine : machines) {
    auto at = std::ranges::find(seen, machine);
    if (at == seen.end()) at = seen.insert(seen.end(), machine);
    out.push_back(static_cast<int32_t>(at - seen.begin()));
  }
  return out;
}

WorldFabric::WorldFabric(Place place, std::unique_ptr<Waiter> waiter)
    : place_(std::move(place)), waiter_(std::move(waiter)), peers_(place_.machines.size()) {}

void WorldFabric::add_peer(int32_t rank, std::unique_ptr<RingPipe> pipe) {
  Peer& to = peer(rank);
  to.ring = pipe.get();
  to.channel = std::make_unique<Channel>(rank, std::move(pipe));
}

void WorldFabric::add_peer(int32_t rank, std::unique_ptr<TcpPipe> pipe) {
  Peer& to = peer(rank);
  to.tcp = pipe.get();
  to.channel = std::make_unique<Channel>(rank, std::move(pipe));
  any_tcp_ = true;
}

void WorldFabric::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

// --- windows ---

bool WorldFabric::windows_possible(std::span<const int32_t> ranks) const {
  return std::ranges::all_of(
      ranks, [this](int32_t rank) { return rank == place_.rank || peers_[static_cast<size_t>(rank)].ring != nullptr; });
}

Status WorldFabric::open_windows(uint64_t lane, std::span<const int32_t> ranks) {
  HALAY_ASSERT(windows_.ranks(lane).empty());
  if (!windows_possible(ranks)) return Status::unsupported("not all members of the set share memory");
  if (abandoned_) return Status::aborted("the world is lost");
  HALAY_TRY(std::shared_ptr<Window> window, make_window());
  windows_.open(lane, place_.rank, ranks, window);
  offer_window(lane, ranks, window);
  return {};
}

void WorldFabric::announce(uint64_t lane) {
  region::full_fence();
  for (int32_t rank : windows_.ranks(lane)) {
    if (RingPipe* ring = peer(rank).ring) ring->ring_for_data();
  }
}

// --- moving bytes ---

bool WorldFabric::progress(FrameSink& sink, Time now) {
  if (abandoned_) return false;
  bool moved = false;
  if (any_tcp_ || look_now_ || now >= look_at_) {
    look_now_ = false;
    look_at_ = now.plus_us(kLookEveryUs);
    moved |= look_around();
  }
  for (int32_t rank = 0; rank < size(); ++rank) {
    if (rank != place_.rank) moved |= progress_peer(rank, sink, now);
  }
  return moved;
}

bool WorldFabric::progress_peer(int32_t rank, FrameSink& sink, Time now) {
  Peer& from = peer(rank);
  if (!open(*from.channel)) return false;
  const bool moved = from.channel->progress(sink);
  if (!open(*from.channel)) {
    // A goodbye is the engine's affair; it has come as a frame.
    if (from.channel->status().code() != Code::peer_lost || !from.channel->said_goodbye()) fail(from.channel->status());
    return true;
  }
  if (from.tcp && place_.heartbeat_ms > 0) keep_alive(rank, now);
  return moved;
}

void WorldFabric::keep_alive(int32_t rank, Time now) {
  Peer& with = peer(rank);
  const ChannelCounters& counters = with.channel->counters();
  const bool first = with.heard_at == Time{};
  if (first || with.tcp->bytes_read() != with.heard_bytes) {
    with.heard_bytes = with.tcp->bytes_read();
    with.heard_at = now;
  }
  if (now > with.heard_at.plus_ms(place_.heartbeat_ms)) {
    fail(Status::peer_lost(
        rank, text("rank ", rank, " is silent for ", static_cast<int64_t>(seconds_between(with.heard_at, now)),
                   " s: the machine, the network or the process has stopped")));
  }
  if (first || counters.frames_sent != with.spoke_frames) {
    with.spoke_frames = counters.frames_sent;
    with.spoke_at = now;
  }
  if (now < with.spoke_at.plus_ms(place_.heartbeat_ms / 3)) return;
  with.spoke_at = now;
  if (with.channel->has_unsent()) return;  // it hears from us already
  ByteWriter beat;
  beat.number(operations_);
  with.channel->send_frame(FrameKind::heartbeat, 0, beat.view());
  with.spoke_frames = counters.frames_sent;
}

Time WorldFabric::next_deadline() const {
  Time next = Time::never();
  if (!any_tcp_ || place_.heartbeat_ms <= 0 || abandoned_ || !status_.ok()) return next;
  for (const Peer& with : peers_) {
    if (!with.tcp || !open(*with.channel) || with.heard_at == Time{}) continue;
    next = std::min(
        {next, with.spoke_at.plus_ms(place_.heartbeat_ms / 3), with.heard_at.plus_ms(place_.heartbeat_ms + 1)});
  }
  return next;
}

// --- sleep and wake ---

bool WorldFabric::prepare_wait() {
  if (abandoned_) {
    waiter_->arm();
    return true;
  }
  for (Peer& with : peers_) {
    if (with.ring && open(*with.channel)) with.ring->sleep(with.channel->has_unsent());
  }
  region::full_fence();
  for (Peer& with : peers_) {
    if (!with.channel || !open(*with.channel)) continue;
    const bool unsent = with.channel->has_unsent();
    const bool came =
        with.ring ? with.ring->something_came(unsent) : with.tcp->can_read() || (unsent && with.tcp->can_write());
    if (!came) continue;
    end_wait();
    return false;
  }
  waiter_->arm();
  return true;
}

void WorldFabric::end_wait() {
  look_now_ = true;
  for (Peer& with : peers_) {
    if (with.ring) with.ring->wake();
  }
}

void WorldFabric::abandon() {
  if (abandoned_) return;
  abandoned_ = true;
  for (Peer& with : peers_) {
    if (with.ring) with.ring->abandon();
  }
  // What cannot be copied is at least never touched again by us.
  Status copied = windows_.make_private();
  if (copied.ok()) copied = abandon_memory();
  if (!copied.ok()) fail(std::move(copied));
}

}  // namespace halay::transport
