// What other ranks say beside tensors: control messages, goodbyes, aborts; and the end of the world.
#include <algorithm>

#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/world.h"

namespace halay::engine {
namespace {

// goodbye: 'g' clean(1) operations(8), or 'h': heard yours. abort: culprit(4) code(1) finder(4) text.
constexpr std::byte kGoodbye{'g'}, kHeard{'h'};

// So often the bytes of an abort are pushed before the ways are given up.
constexpr int kAbortRounds = 64;

}  // namespace

void World::on_frame(int32_t rank, transport::FrameKind kind, uint64_t lane, std::span<const std::byte> payload) {
  if (!status_.ok()) return;
  switch (kind) {
    case transport::FrameKind::control:
      return on_control(rank, lane, payload);
    case transport::FrameKind::set_hello:
      return on_hello(rank, lane, payload);
    case transport::FrameKind::goodbye:
      return on_goodbye(rank, payload);
    case transport::FrameKind::abort:
      return on_abort(rank, payload);
    case transport::FrameKind::data:
    case transport::FrameKind::heartbeat:
      return;
  }
}

void World::on_control(int32_t rank, uint64_t lane, std::span<const std::byte> payload) {
  ProcessSet* set = set_of_lane(lane);
  if (set == nullptr) return;  // of a set that this rank has ended
  const int member = set->member_of(rank);
  if (member < 0) {
    pending_loss_ = Status::internal(text("rank ", rank, " spoke in ", set->label, ", of which it is no member"));
    return;
  }
  if (!set->active) {
    set->early.emplace_back(member, std::vector<std::byte>(payload.begin(), payload.end()));
    return;
  }
  Status received = set->control->receive(member, payload, parts_.clock.now());
  if (!received.ok()) pending_loss_ = std::move(received);
  set->touched = true;
}

void World::on_goodbye(int32_t rank, std::span<const std::byte> payload) {
  ByteReader reader(payload);
  const auto kind = reader.number<uint8_t>();
  if (kind == static_cast<uint8_t>(kHeard)) {
    knows_goodbye_[static_cast<size_t>(rank)] = true;
    note_goodbyes();
    return;
  }
  const bool clean = reader.number<uint8_t>() != 0;
  const auto operations = reader.number<uint64_t>();
  fabric_->channel(rank)->send_frame(transport::FrameKind::goodbye, 0, {&kHeard, 1});
  if (!clean) {
    pending_loss_ = Status::peer_lost(
        rank, text("rank ", rank, " shut down after ", operations, " operations, some of them unfinished"));
    return;
  }
  left_[static_cast<size_t>(rank)] = true;
  note_goodbyes();
  const Status why =
      Status::peer_lost(rank, text("rank ", rank, " finished normally after ", operations, " operations"));
  for (auto& [id, set] : sets_) {
    const int member = set->member_of(rank);
    if (member < 0) continue;
    set->control->leave(member, why, parts_.clock.now());
    set->touched = true;
  }
}

void World::on_abort(int32_t rank, std::span<const std::byte> payload) {
  ByteReader reader(payload);
  const auto culprit = static_cast<int32_t>(reader.number<uint32_t>());
  const auto code = static_cast<Code>(reader.number<uint8_t>());
  const auto finder = static_cast<int32_t>(reader.number<uint32_t>());
  const std::string_view words = text_of(reader.rest());
  if (reader.failed()) {
    pending_loss_ = Status(Code::aborted, text("rank ", rank, " ended the world without a reason"), rank);
    return;
  }
  verdict_.assign(payload.begin(), payload.end());
  if (code == Code::peer_lost) {
    pending_loss_ = Status::peer_lost(culprit, text(words, " (told by rank ", finder, ")"));
  } else {
    pending_loss_ = Status(Code::aborted, text("rank ", finder, " ended the world: ", words), culprit);
  }
}

void World::say_goodbye(EngineToken&, bool clean) {
  if (!status_.ok()) return;
  ByteWriter writer;
  writer.number(static_cast<uint8_t>(kGoodbye))
      .number(static_cast<uint8_t>(clean ? 1 : 0))
      .number(parts_.intake.operations_submitted());
  for (int32_t rank = 0; rank < fabric_->size(); ++rank) {
    if (rank != fabric_->rank() && !left_[static_cast<size_t>(rank)]) {
      fabric_->channel(rank)->send_frame(transport::FrameKind::goodbye, 0, writer.view());
    }
  }
  note_goodbyes();
}

void World::note_goodbyes() {
  bool all = true;
  for (int32_t rank = 0; rank < fabric_->size(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    all = all && (rank == fabric_->rank() || knows_goodbye_[r] || left_[r]);
  }
  goodbye_heard_.store(all, std::memory_order_release);
  ++news_;
}

void World::close(EngineToken&, Status why) {
  if (!status_.ok()) return;
  status_ = std::move(why);
  lost_.store(true, std::memory_order_release);
  ++news_;
  executor_->abandon(status_);
  fail_everything();
}

void World::lose(EngineToken& token, Status why) {
  if (!status_.ok()) return;
  parts_.intake.refuse_all(why);
  if (verdict_.empty()) {
    ByteWriter writer;
    writer.number(static_cast<uint32_t>(why.culprit()))
        .number(static_cast<uint8_t>(why.code()))
        .number(static_cast<uint32_t>(fabric_->rank()))
        .bytes(bytes_of(std::string_view(why.text())));
    verdict_.assign(writer.view().begin(), writer.view().end());
  }
  for (int32_t rank = 0; rank < fabric_->size(); ++rank) {
    if (rank != fabric_->rank() && !left_[static_cast<size_t>(rank)]) {
      fabric_->channel(rank)->send_frame(transport::FrameKind::abort, 0, verdict_);
    }
  }
  for (int round = 0; round < kAbortRounds && fabric_->progress(*this, parts_.clock.now()); ++round) {
  }
  // Before any handle fails: a user who gets the error may reuse buffers that a peer could still write or read (rule
  // 12).
  fabric_->abandon();
  HALAY_LOG(error, why.text());
  close(token, std::move(why));
}

void World::fail_everything() {
  finished_.clear();
  executor_->take_finished(finished_);
  running_.clear();
  std::vector<Operation*> already;
  for (const Completed& completed : completed_) already.push_back(completed.operation);
  for (Operation* operation : parts_.handles.pending()) {
    if (std::ranges::find(already, operation) == already.end()) complete(*operation, status_);
  }
  flush_completed();
}

}  // namespace halay::engine
