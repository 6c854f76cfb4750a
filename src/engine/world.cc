#include "engine/world.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "engine/binding.h"
#include "fusion/fusion.h"

namespace halay::engine {
namespace {

execute::ExecutorOptions executor_options(const Config& config) {
  execute::ExecutorOptions options;
  options.op_deadline_ms = config.op_deadline_ms();
  options.reproducible = config.reproducible;
  options.force_allreduce_algorithm = config.algorithms;
  return options;
}

Ticket ticket_of(const Operation& operation) { return static_cast<Ticket>(operation.handle.load()); }

}  // namespace

World::World(WorldParts parts, std::unique_ptr<transport::Fabric> fabric)
    : parts_(parts),
      fabric_(std::move(fabric)),
      executor_(
          std::make_unique<execute::Executor>(*fabric_, executor_options(parts.config), parts.names, parts.timeline)),
      left_(static_cast<size_t>(fabric_->size())),
      knows_goodbye_(static_cast<size_t>(fabric_->size())) {}

World::~World() {
  // The executor points into the fabric.
  executor_.reset();
}

bool World::drive(EngineToken& token, Time now) {
  ++counters_.rounds;
  bool moved = take_intents(token, now);
  moved |= fabric_->progress(*this, now);
  if (status_.ok()) {
    moved |= step_sets(now);
    moved |= executor_->progress(now);
    moved |= finish_batches(now);
    // What this round has to say goes out in this round: the driver may leave now.
    if (moved) fabric_->progress(*this, now);
    if (!pending_loss_.ok() || !fabric_->status().ok()) settle_and_lose(token, now);
  }
  flush_completed();
  return moved;
}

// An operation for which everything had come before the loss was seen ends well: who ends the world after a step must
// not take that step from slower ranks.
void World::settle_and_lose(EngineToken& token, Time now) {
  const Status why = pending_loss_.ok() ? fabric_->status() : pending_loss_;
  (void)step_sets(now);
  while (executor_->progress(now)) {
  }
  (void)finish_batches(now);
  lose(token, why);
}

bool World::glance(EngineToken&, Time now) {
  if (!status_.ok()) return false;
  bool moved = executor_->progress(now);
  moved |= finish_batches(now);
  flush_completed();
  return moved;
}

Time World::next_deadline(EngineToken&) const {
  Time deadline = std::min(fabric_->next_deadline(), executor_->next_deadline());
  for (const auto& [id, set] : sets_) {
    if (set->active) deadline = std::min(deadline, set->control->next_deadline());
  }
  return deadline;
}

void World::urge(EngineToken&, SetId set, Time now) {
  const auto found = sets_.find(set);
  if (found == sets_.end() || !found->second->active) return;
  found->second->control->urge(now);
  found->second->touched = true;
}

bool World::take_intents(EngineToken& token, Time now) {
  if (parts_.intake.empty()) return false;
  parts_.intake.take(intents_);
  // By index: a call may come back here through drive().
  std::vector<Intent> intents;
  std::swap(intents, intents_);
  for (const Intent& intent : intents) {
    switch (intent.kind) {
      case Intent::Kind::operation:
      case Intent::Kind::join:
        if (status_.ok()) take_operation(*intent.operation, now);
        break;  // else fail_everything() has met or will meet it
      case Intent::Kind::urge:
        urge(token, intent.set, now);
        break;
      case Intent::Kind::call:
        (*intent.call)(token);
        ++news_;
        break;
    }
  }
  fabric_->set_progress(parts_.intake.operations_submitted());
  if (intents_.capacity() < intents.capacity()) std::swap(intents, intents_);
  intents_.clear();
  if (!status_.ok()) fail_everything();
  return true;
}

void World::take_operation(Operation& operation, Time now) {
  const auto found = sets_.find(operation.submission.set);
  HALAY_ASSERT(found != sets_.end());
  ProcessSet& set = *found->second;
  set.touched = true;
  operation.submitted = now;
  const Request& request = operation.submission.request;
  if (request.kind == OpKind::join) {
    set.control->join(ticket_of(operation), now);
    return;
  }
  // Always: the flight recorder keeps the last events also while no timeline is written.
  parts_.timeline.negotiate_begin(request.name, request.kind, now);
  parts_.timeline.rank_ready(request.name, fabric_->rank(), now);
  set.control->submit(ticket_of(operation), request, (operation.submission.flags & kUrgent) != 0, now);
}

bool World::step_sets(Time now) {
  bool moved = false;
  for (auto& [id, set] : sets_) {
    if (!set->active) {
      try_activate(*set);
      moved |= set->active;
      continue;
    }
    if (!set->touched && now < set->control->next_deadline()) continue;
    set->touched = false;
    set->control->step(now);
    moved |= !set->control->outgoing().empty();
    send_outgoing(*set);
    while (const DecisionList* list = set->control->next_list()) {
      moved = true;
      if (!run_list(*set, *list, now)) break;
    }
    for (const control::Notice& notice : set->control->notices()) HALAY_LOG(warning, notice.text);
    set->control->notices().clear();
    if (pending_loss_.ok() && !set->control->status().ok()) pending_loss_ = set->control->status();
  }
  return moved;
}

void World::send_outgoing(ProcessSet& set) {
  for (const control::Outgoing& message : set.control->outgoing()) {
    const int32_t rank = set.ranks[static_cast<size_t>(message.member)];
    if (left_[static_cast<size_t>(rank)]) continue;
    fabric_->channel(rank)->send_frame(transport::FrameKind::control, set.lane, message.bytes);
  }
  set.control->outgoing().clear();
}

bool World::run_list(ProcessSet& set, const DecisionList& list, Time now) {
  bool all_bound = true;
  parts_.timeline.list_decided(list.number, now);
  for (const Decided& decided : list.decided) {
    if (decided.ticket == Ticket::none) continue;
    Operation* operation = parts_.handles.find(static_cast<Handle>(decided.ticket));
    HALAY_ASSERT(operation != nullptr);
    operation->decided = true;
    if (decided.decision->kind != OpKind::join) parts_.timeline.negotiate_end(decided.decision->name, now);
    if (!decided.decision->status.ok()) {
      complete(*operation, decided.decision->status);
      continue;
    }
    // The others count on this rank now: without room for the result the world cannot go on.
    Status bound = bind(*operation, *decided.decision, set.member_count(), set.me);
    if (bound.ok()) continue;
    all_bound = false;
    pending_loss_ = std::move(bound);
  }
  if (!all_bound) return false;
  for (Batch& batch : fusion::pack(list, set.member_count(), set.me)) start_batch(set, std::move(batch), now);
  return true;
}

void World::start_batch(ProcessSet& set, Batch batch, Time now) {
  execute::BoundBatch bound;
  bound.id = next_batch_++;
  RunningBatch& running = running_[bound.id];
  if (batch.kind == OpKind::join) running.last_joined = set.ranks[static_cast<size_t>(batch.last_joined)];
  for (const BatchTensor& tensor : batch.tensors) {
    Operation* operation =
        tensor.ticket == Ticket::none ? nullptr : parts_.handles.find(static_cast<Handle>(tensor.ticket));
    if (operation != nullptr) running.operations.push_back(operation);
    bound.bindings.push_back(operation != nullptr ? operation->binding : execute::Binding{});
  }
  bound.batch = std::move(batch);
  executor_->enqueue(set.lane, std::move(bound), now);
}

bool World::finish_batches(Time) {
  finished_.clear();
  executor_->take_finished(finished_);
  for (execute::Finished& finished : finished_) {
    const auto found = running_.find(finished.id);
    if (found == running_.end()) continue;
    for (Operation* operation : found->second.operations) {
      if (found->second.last_joined >= 0) operation->result.last_joined = found->second.last_joined;
      complete(*operation, finished.status);
    }
    running_.erase(found);
    const Code code = finished.status.code();
    if (status_.ok() && (code == Code::peer_lost || code == Code::aborted || code == Code::internal)) {
      pending_loss_ = std::move(finished.status);
    }
  }
  return !finished_.empty();
}

void World::complete(Operation& operation, Status status) {
  ++(status.ok() ? counters_.operations : counters_.failures);
  ++news_;
  completed_.push_back({&operation, std::move(status)});
}

void World::flush_completed() {
  if (completed_.empty()) return;
  freed_.clear();
  for (const Completed& completed : completed_) freed_.push_back(completed.operation);
  parts_.intake.finished(freed_);
  for (Completed& completed : completed_) parts_.handles.complete(*completed.operation, std::move(completed.status));
  completed_.clear();
}

}  // namespace halay::engine
