#include "transport/channel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "transport/frame.h"

namespace halay::transport {
namespace {

// A channel gives way to the others after so much in one progress().
constexpr size_t kBytesAtOnce = size_t{1} << 20;
constexpr int kFramesAtOnce = 64;
// A payload's memory grows as its bytes come, so that a broken length costs nothing.
constexpr size_t kGrowBytes = size_t{1} << 20;
constexpr size_t kEntriesAtOnce = 16;

struct Outgoing {
  FrameKind kind = FrameKind::control;
  uint64_t lane = 0;
  std::vector<std::byte> copy;  // of a frame; empty where the bytes are the poster's
  std::span<const std::byte> payload;
  Transfer* transfer = nullptr;
  bool begun = false;  // has its header
  std::array<std::byte, kFrameHeaderBytes> header;
  size_t sent_bytes = 0;  // of header and payload together

  size_t total_bytes() const { return kFrameHeaderBytes + payload.size(); }
};

struct Posted {
  std::span<std::byte> into;
  Transfer* transfer = nullptr;
};

// Data that came before it was asked for.
struct Unexpected {
  std::vector<std::byte> bytes;
  size_t total_bytes = 0;
};

struct Lane {
  std::deque<Posted> posted;
  std::deque<Unexpected> unexpected;  // never both
};

enum class Into : uint8_t { header, message, posted, unexpected };

}  // namespace

struct Channel::State {
  int32_t peer = -1;
  std::unique_ptr<Pipe> pipe;
  Status status;
  ChannelCounters counters;
  bool goodbye = false, abort = false;

  std::deque<Outgoing> outgoing;
  uint32_t next_number = 0;

  std::unordered_map<uint64_t, Lane> lanes;
  Into into = Into::header;
  std::array<std::byte, kFrameHeaderBytes> header_bytes;
  size_t got_bytes = 0;  // of what is being read now
  uint32_t awaited_number = 0;
  FrameHeader header;
  std::vector<std::byte> message;
  Posted current;                    // Into::posted; no transfer: forgotten by cancel_lane
  std::vector<std::byte> forgotten;  // takes what nobody wants any more

  void begin(Outgoing& entry);
  bool push();
  bool write_now(Outgoing& entry);
  void enqueue(Outgoing&& entry);
  void finish(Outgoing& entry);

  void fail(std::string_view what) { status = Status::internal(text("rank ", peer, " sent ", what)); }
  Status end_status() const;
  bool pull(FrameSink& sink);
  std::span<std::byte> destination();
  void take_header();
  void take_data_header();
  void payload_complete(FrameSink& sink);
};

Channel::Channel(int32_t peer_rank, std::unique_ptr<Pipe> pipe) : state_(std::make_unique<State>()) {
  state_->peer = peer_rank;
  state_->pipe = std::move(pipe);
}

Channel::~Channel() = default;

int32_t Channel::peer_rank() const { return state_->peer; }
const Status& Channel::status() const { return state_->status; }
bool Channel::said_goodbye() const { return state_->goodbye; }
const ChannelCounters& Channel::counters() const { return state_->counters; }
Pipe& Channel::pipe() { return *state_->pipe; }
bool Channel::has_unsent() const { return !state_->outgoing.empty(); }

// --- sending ---

void Channel::State::begin(Outgoing& entry) {
  if (entry.begun) return;
  // Numbered only now: what is cancelled before leaves no gap.
  entry.header = encode({entry.kind, next_number++, entry.lane, entry.payload.size()});
  entry.begun = true;
}

void Channel::State::finish(Outgoing& entry) {
  ++counters.frames_sent;
  counters.bytes_sent += entry.payload.size();
  if (entry.transfer) entry.transfer->done = true;
}

// What is left of the entry, as two parts.
static std::array<std::span<const std::byte>, 2> rest_of(const Outgoing& entry) {
  const size_t header_sent = std::min(entry.sent_bytes, kFrameHeaderBytes);
  return {std::span<const std::byte>(entry.header).subspan(header_sent),
          entry.payload.subspan(entry.sent_bytes - header_sent)};
}

// True if all of it has left.
bool Channel::State::write_now(Outgoing& entry) {
  begin(entry);
  const auto parts = rest_of(entry);
  entry.sent_bytes += pipe->write(parts);
  if (entry.sent_bytes > 0) pipe->ring();
  if (entry.sent_bytes < entry.total_bytes()) return false;
  finish(entry);
  return true;
}

void Channel::State::enqueue(Outgoing&& entry) {
  if (!status.ok()) return;
  if (outgoing.empty() && write_now(entry)) return;
  if (!entry.transfer) {
    // A frame's bytes are only lent: keep them.
    entry.copy.assign(entry.payload.begin(), entry.payload.end());
    outgoing.push_back(std::move(entry));
    outgoing.back().payload = outgoing.back().copy;
    return;
  }
  outgoing.push_back(std::move(entry));
}

bool Channel::State::push() {
  bool moved = false;
  while (!outgoing.empty()) {
    std::array<std::span<const std::byte>, 2 * kEntriesAtOnce> parts;
    size_t count = 0, offered = 0;
    for (size_t i = 0; i < outgoing.size() && i < kEntriesAtOnce; ++i) {
      begin(outgoing[i]);
      for (const auto& part : rest_of(outgoing[i])) {
        if (part.empty()) continue;
        parts[count++] = part;
        offered += part.size();
      }
    }
    const size_t written = pipe->write(std::span(parts).first(count));
    moved |= written > 0;
    for (size_t left = written; left > 0;) {
      Outgoing& entry = outgoing.front();
      const size_t taken = std::min(left, entry.total_bytes() - entry.sent_bytes);
      entry.sent_bytes += taken;
      left -= taken;
      if (entry.sent_bytes < entry.total_bytes()) break;
      finish(entry);
      outgoing.pop_front();
    }
    if (written < offered) break;
  }
  return moved;
}

void Channel::send_frame(FrameKind kind, uint64_t lane, std::span<const std::byte> payload) {
  HALAY_ASSERT(kind != FrameKind::data && payload.size() <= kMostMessageBytes);
  Outgoing entry;
  entry.kind = kind;
  entry.lane = lane;
  entry.payload = payload;
  state_->enqueue(std::move(entry));
}

void Channel::post_send(uint64_t lane, std::span<const std::byte> bytes, Transfer* transfer) {
  HALAY_ASSERT(transfer);
  transfer->done = false;
  Outgoing entry;
  entry.kind = FrameKind::data;
  entry.lane = lane;
  entry.payload = bytes;
  entry.transfer = transfer;
  state_->enqueue(std::move(entry));
}

// --- receiving ---

void Channel::post_recv(uint64_t lane, std::span<std::byte> bytes, Transfer* transfer) {
  HALAY_ASSERT(transfer);
  transfer->done = false;
  State& s = *state_;
  Lane& queue = s.lanes[lane];
  if (queue.unexpected.empty()) {
    queue.posted.push_back({bytes, transfer});
    return;
  }
  Unexpected& early = queue.unexpected.front();
  if (early.total_bytes != bytes.size()) {
    if (s.status.ok())
      s.fail(text(early.total_bytes, " bytes on lane ", lane, " where ", bytes.size(), " were awaited"));
    return;
  }
  // Only the newest can still be on its way.
  const bool arriving = s.into == Into::unexpected && s.header.lane == lane && queue.unexpected.size() == 1;
  const size_t there = arriving ? s.got_bytes : early.total_bytes;
  if (there > 0) std::memcpy(bytes.data(), early.bytes.data(), there);
  if (arriving) {
    s.into = Into::posted;
    s.current = {bytes, transfer};
  } else {
    transfer->done = true;
  }
  queue.unexpected.pop_front();
}

void Channel::cancel_lane(uint64_t lane) {
  State& s = *state_;
  if (s.header.lane == lane && (s.into == Into::posted || s.into == Into::unexpected)) {
    s.into = Into::posted;
    s.current = {};
  }
  s.lanes.erase(lane);
  std::erase_if(s.outgoing,
                [lane](const Outgoing& entry) { return entry.transfer && entry.lane == lane && !entry.begun; });
  for (Outgoing& entry : s.outgoing) {
    if (!entry.transfer || entry.lane != lane) continue;
    entry.copy.assign(entry.payload.begin(),
                      entry.payload.end());  // the peer still needs the rest to find the next frame
    entry.payload = entry.copy;
    entry.transfer = nullptr;
  }
}

void Channel::State::take_header() {
  got_bytes = 0;
  Result<FrameHeader> decoded = decode_frame_header(header_bytes);
  if (!decoded.ok()) return fail(decoded.status().text());
  header = decoded.value();
  if (header.number != awaited_number) {
    return fail(text("frame number ", header.number, " where ", awaited_number, " was awaited"));
  }
  ++awaited_number;
  if (header.kind == FrameKind::data) return take_data_header();
  into = Into::message;
}

void Channel::State::take_data_header() {
  Lane& lane = lanes[header.lane];
  if (lane.posted.empty()) {
    lane.unexpected.push_back({{}, header.payload_bytes});
    into = Into::unexpected;
    return;
  }
  current = lane.posted.front();
  if (current.into.size() != header.payload_bytes) {
    return fail(
        text(header.payload_bytes, " bytes on lane ", header.lane, " where ", current.into.size(), " were awaited"));
  }
  lane.posted.pop_front();
  into = Into::posted;
}

// Where the next bytes go; empty: what is being read is complete.
std::span<std::byte> Channel::State::destination() {
  if (into == Into::header) return std::span(header_bytes).subspan(got_bytes);
  const size_t left = header.payload_bytes - got_bytes;
  if (into == Into::posted && current.transfer) return current.into.subspan(got_bytes);
  if (into == Into::posted) {
    forgotten.resize(std::min(left, kGrowBytes));
    return forgotten;
  }
  std::vector<std::byte>& buffer = into == Into::message ? message : lanes[header.lane].unexpected.back().bytes;
  const size_t ready = std::min<size_t>(header.payload_bytes, got_bytes + kGrowBytes);
  if (buffer.size() < ready || into == Into::message) buffer.resize(ready);
  return std::span(buffer).subspan(got_bytes);
}

void Channel::State::payload_complete(FrameSink& sink) {
  ++counters.frames_received;
  counters.bytes_received += header.payload_bytes;
  got_bytes = 0;
  const Into was = std::exchange(into, Into::header);
  if (was == Into::posted && current.transfer) current.transfer->done = true;
  if (was == Into::unexpected) counters.unexpected_bytes += header.payload_bytes;
  if (was != Into::message) return;
  goodbye |= header.kind == FrameKind::goodbye;
  abort |= header.kind == FrameKind::abort;
  sink.on_frame(peer, header.kind, header.lane, message);
}

bool Channel::State::pull(FrameSink& sink) {
  size_t moved_bytes = 0;
  int frames = 0;
  while (moved_bytes < kBytesAtOnce && frames < kFramesAtOnce && status.ok()) {
    const std::span<std::byte> to = destination();
    if (to.empty()) {
      ++frames;
      if (into == Into::header) {
        take_header();
      } else {
        payload_complete(sink);
      }
      continue;
    }
    const size_t got = pipe->read(to);
    if (got == 0) break;
    got_bytes += got;
    moved_bytes += got;
  }
  return moved_bytes > 0 || frames > 0;
}

Status Channel::State::end_status() const {
  if (abort) return Status::peer_lost(peer, text("rank ", peer, " ended after it aborted the world"));
  if (into != Into::header || got_bytes > 0) {
    return Status::peer_lost(peer, text("rank ", peer, " died: its connection closed in the middle of a frame"));
  }
  if (goodbye) return Status::peer_lost(peer, text("rank ", peer, " has ended, and said goodbye before"));
  return Status::peer_lost(peer, text("rank ", peer, " died: its connection closed without a goodbye"));
}

bool Channel::progress(FrameSink& sink) {
  State& s = *state_;
  if (!s.status.ok()) return false;
  const bool sent = s.push();
  const bool received = s.pull(sink);
  if (sent || received) s.pipe->ring();
  if (s.status.ok() && !received && s.pipe->ended()) s.status = s.end_status();
  return sent || received;
}

}  // namespace halay::transport
