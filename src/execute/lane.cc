#include "execute/lane.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace halay::execute {
namespace {

// Work of one lane in one call: long enough to be worth the turn, short enough that others do not wait for it.
constexpr size_t kBudgetBytes = size_t{1} << 20;
constexpr int kBatchesPerCall = 16;
// One copy into or out of a fused buffer.
constexpr size_t kCopyBytes = collective::kChunkBytes;

// Elements that a Batch moves in all, or 0 if nothing does.
bool has_elements(const Batch& batch) {
  if (batch.counts.empty()) return batch.count_elems > 0;
  return std::ranges::any_of(batch.counts, [](size_t count) { return count > 0; });
}

bool moves_data(OpKind kind) { return traits_of(kind).output != OutputRule::none; }

}  // namespace

Lane::Lane(LaneSpec spec, LaneShared& shared)
    : spec_(std::move(spec)), shared_(shared), surroundings_(shared.fabric, spec_, shared.options) {
  for (const int32_t rank : spec_.ranks) {
    Member member;
    member.rank = rank;
    if (rank != spec_.ranks[static_cast<size_t>(spec_.me)]) member.channel = shared_.fabric.channel(rank);
    if (spec_.windows) member.window = shared_.fabric.window(spec_.lane, rank);
    lane_members_.push_back(member);
  }
}

bool Lane::progress(Time now) {
  bool moved = false;
  size_t budget = kBudgetBytes;
  for (int batches = 0;;) {
    if (phase_ == Phase::idle) {
      if (queue_.empty() || batches == kBatchesPerCall) return moved;
      ++batches;
      moved = true;
      begin_batch(now);
      continue;
    }
    if (advance(now, budget, moved) != Outcome::done) return moved;
    moved = true;
  }
}

// ---- the beginning of a Batch ----

void Lane::begin_batch(Time now) {
  bound_ = std::move(queue_.front());
  queue_.pop_front();
  started_ = now;
  Batch& batch = bound_.batch;
  if (batch.kind == OpKind::join) {  // a barrier of all, those that had joined included
    batch.members.resize(spec_.ranks.size());
    for (size_t i = 0; i < batch.members.size(); ++i) batch.members[i] = static_cast<int>(i);
    batch.me = spec_.me;
  }
  // A rank that has joined has nothing to do: what is agreed does not count on its side either (see below).
  if (batch.me < 0) return end_batch(Status(), now);
  members_.clear();
  for (const int member : batch.members) members_.push_back(lane_members_[static_cast<size_t>(member)]);
  const auto position = std::ranges::find(batch.members, spec_.me);
  HALAY_ASSERT(position != batch.members.end());
  me_ = static_cast<int>(position - batch.members.begin());
  // One that joined a moment ago may still read what the last operation left in the windows, and nobody hears from it
  // in this one. So windows, and their numbers, are only for operations in which all members take part.
  windows_ = spec_.windows && members_.size() == spec_.ranks.size();
  begin_operation(now);
  enter(now);
}

bool Lane::moves_nothing() const { return moves_data(bound_.batch.kind) && !has_elements(bound_.batch); }

bool Lane::fits_tiny() const {
  const Batch& batch = bound_.batch;
  if (!windows_ || !surroundings_.tiny_allowed(batch.kind)) return false;
  if (!moves_data(batch.kind)) return true;
  return batch.kind == OpKind::allreduce && batch.count_elems <= kTinyPayloadBytes / bytes_of(batch.dtype);
}

collective::Problem Lane::problem() const {
  collective::Problem problem = collective::Problem::of(bound_.batch);
  if (!moves_data(problem.kind)) {
    problem.kind = OpKind::barrier;
    problem.count_elems = 0;
    problem.counts.clear();
  }
  problem.me = me_;
  return problem;
}

void Lane::enter(Time now) {
  const Batch& batch = bound_.batch;
  if (moves_nothing()) return end_batch(Status(), now);
  if (moves_data(batch.kind)) {
    bind_user_memory();
  } else {
    user_input_.clear();
    user_output_.clear();
  }
  if (fits_tiny()) {
    enter_tiny(now);
  } else {
    enter_schedule(now);
  }
}

void Lane::bind_user_memory() {
  const Batch& batch = bound_.batch;
  const size_t width = bytes_of(batch.dtype);
  HALAY_ASSERT(traits_of(batch.kind).fusable || bound_.bindings.size() == 1);
  user_input_.clear();
  user_output_.clear();
  for (const Binding& binding : bound_.bindings) {
    // A rank that only receives may have no input.
    const void* input = binding.input != nullptr ? binding.input : binding.output;
    user_input_.add(input, binding.input_elems * width);
    user_output_.add(binding.output, binding.output_elems * width);
  }
}

// ---- the tiny path ----

void Lane::enter_tiny(Time now) {
  ++tiny_number_;
  ++shared_.counters.tiny;
  const Member& self = members_[static_cast<size_t>(me_)];
  std::byte* payload = self.payload(tiny_number_);
  for (size_t done = 0; done < user_input_.size_bytes();) {
    const std::span<const std::byte> piece = user_input_.from(done);
    std::copy(piece.begin(), piece.end(), payload + done);
    done += piece.size();
  }
  self.publish(tiny_number_);
  shared_.fabric.announce(spec_.lane);
  begin_activity(main_activity(), now);
  phase_ = Phase::tiny;
}

Outcome Lane::advance_tiny(Time now) {
  for (const Member& member : members_) {
    if (!member.published(tiny_number_)) return Outcome::waiting;
  }
  const Batch& batch = bound_.batch;
  const size_t size_bytes = user_output_.size_bytes();
  if (size_bytes > 0) {
    std::byte result[kTinyPayloadBytes];
    sources_.clear();
    for (const Member& member : members_) sources_.push_back(member.payload(tiny_number_));
    math::reduce_all(batch.dtype, batch.reduce_op, result, sources_.data(), sources_.size(), batch.count_elems,
                     {batch.prescale, batch.postscale, batch.divisor});
    for (size_t done = 0; done < size_bytes;) {
      const std::span<std::byte> piece = user_output_.from(done);
      std::copy_n(result + done, piece.size(), piece.begin());
      done += piece.size();
    }
  }
  end_activity(now);
  end_batch(Status(), now);
  return Outcome::done;
}

// ---- the path by Schedule ----

void Lane::enter_schedule(Time now) {
  const collective::Problem problem = this->problem();
  auto plan = shared_.plans.get(problem, surroundings_.of(problem.kind, windows_), surroundings_.id(windows_));
  if (!plan.ok()) return end_batch(std::move(plan).status(), now);
  plan_ = std::move(plan).value();
  const Status bound = bind_scratch();
  if (!bound.ok()) {
    // The others have begun and count on this rank.
    shared_.lost = Status::aborted(
        text(title(), ": rank ", spec_.ranks[static_cast<size_t>(spec_.me)], " cannot go on: ", bound.text()));
    return end_batch(shared_.lost, now);
  }
  if (fused_.size_bytes() > 0) {
    begin_activity(trace::Activity::MEMCPY_IN_FUSION_BUFFER, now);
    copied_bytes_ = 0;
    phase_ = Phase::pack;
  } else {
    begin_run(now);
  }
}

Status Lane::bind_scratch() {
  const Schedule& schedule = plan_->schedule;
  const DType dtype = bound_.batch.dtype;
  const size_t width = bytes_of(dtype);
  const size_t acc_width = bytes_of(accumulator_of(dtype));
  // What is sent must lie in one piece; where nothing is sent, tensors are read and written where they lie.
  const bool fused = plan_->posts_user_memory && (user_input_.piece_count() > 1 || user_output_.piece_count() > 1);
  if (fused) {
    HALAY_TRY(fused_, shared_.pool.take(user_input_.size_bytes()));
    buffers_.input.set(fused_.data(), user_input_.size_bytes());
    buffers_.output.set(fused_.data(), user_output_.size_bytes());
  } else {
    buffers_.input = user_input_;
    buffers_.output = user_output_;
  }
  if (schedule.staging_elems > 0) {
    HALAY_TRY(staging_, shared_.pool.take(schedule.staging_elems * width));
    buffers_.staging.set(staging_.data(), schedule.staging_elems * width);
  }
  if (schedule.acc_is_output && !widens(dtype)) {
    buffers_.acc = buffers_.output;
  } else if (schedule.acc_elems > 0) {
    HALAY_TRY(acc_, shared_.pool.take(schedule.acc_elems * acc_width));
    buffers_.acc.set(acc_.data(), schedule.acc_elems * acc_width);
  }
  return Status();
}

void Lane::begin_run(Time now) {
  const Batch& batch = bound_.batch;
  begin_activity(main_activity(), now);
  ScheduleRun::Spec spec;
  spec.schedule = &plan_->schedule;
  spec.buffers = &buffers_;
  spec.members = members_;
  spec.arithmetic = {batch.dtype, batch.reduce_op, {batch.prescale, batch.postscale, batch.divisor}};
  spec.me = me_;
  spec.lane = spec_.lane;
  spec.flag_base = flag_base_;
  spec.window_offset_bytes = (window_number_ & 1) * (shared_.fabric.window_bytes() / 2);
  spec.announce_to = &shared_.fabric;
  run_.start(spec);
  phase_ = Phase::run;
}

void Lane::after_run(Time now) {
  run_.drop();
  if (plan_->schedule.uses_windows) {
    flag_base_ += plan_->schedule.flag_span;
    ++window_number_;
  }
  end_activity(now);
  if (fused_.size_bytes() == 0) return end_batch(Status(), now);
  begin_activity(trace::Activity::MEMCPY_OUT_FUSION_BUFFER, now);
  copied_bytes_ = 0;
  phase_ = Phase::unpack;
}

Outcome Lane::advance_copy(const Extent& to, const Extent& from, size_t& budget) {
  while (copied_bytes_ < to.size_bytes()) {
    if (budget == 0) return Outcome::working;
    const std::span<const std::byte> source = from.from(copied_bytes_);
    const std::span<std::byte> target = to.from(copied_bytes_);
    const size_t count = std::min({source.size(), target.size(), kCopyBytes});
    math::copy(target.data(), source.data(), count);
    copied_bytes_ += count;
    budget -= std::min(budget, count);
  }
  return Outcome::done;
}

Outcome Lane::advance(Time now, size_t& budget, bool& moved) {
  switch (phase_) {
    case Phase::idle:
      return Outcome::done;
    case Phase::tiny:
      return advance_tiny(now);
    case Phase::pack: {
      moved = true;
      const Outcome outcome = advance_copy(buffers_.input, user_input_, budget);
      if (outcome != Outcome::done) return outcome;
      end_activity(now);
      begin_run(now);
      return Outcome::done;
    }
    case Phase::run: {
      const size_t before = run_.steps_done();
      const Outcome outcome = run_.advance(budget);
      moved = moved || run_.steps_done() != before;
      if (outcome == Outcome::done) after_run(now);
      return outcome;
    }
    case Phase::unpack: {
      moved = true;
      const Outcome outcome = advance_copy(user_output_, buffers_.output, budget);
      if (outcome != Outcome::done) return outcome;
      end_activity(now);
      end_batch(Status(), now);
      return Outcome::done;
    }
  }
  return Outcome::done;
}

// ---- the end of a Batch ----

void Lane::end_batch(const Status& status, Time now) {
  ExecutorCounters& counters = shared_.counters;
  const Batch& batch = bound_.batch;
  if (batch.me >= 0) {
    ++counters.batches;
    counters.tensors += batch.tensors.size();
    for (const Binding& binding : bound_.bindings) counters.bytes += binding.input_elems * bytes_of(batch.dtype);
    end_operation(now);
  }
  shared_.finished.push_back({bound_.id, status});
  phase_ = Phase::idle;
  plan_.reset();
  fused_ = {};
  staging_ = {};
  acc_ = {};
}

void Lane::abandon(const Status& status) {
  if (phase_ != Phase::idle) {
    run_.drop();
    shared_.finished.push_back({bound_.id, status});
    phase_ = Phase::idle;
    plan_.reset();
    fused_ = {};
    staging_ = {};
    acc_ = {};
  }
  for (const BoundBatch& bound : queue_) shared_.finished.push_back({bound.id, status});
  queue_.clear();
}

// ---- deadlines and words ----

Time Lane::deadline() const {
  if (phase_ == Phase::idle || shared_.options.op_deadline_ms <= 0) return Time::never();
  return started_.plus_ms(shared_.options.op_deadline_ms);
}

int Lane::waits_for_rank() const {
  if (phase_ == Phase::run) {
    const int member = run_.waits_for();
    return member < 0 ? -1 : members_[static_cast<size_t>(member)].rank;
  }
  if (phase_ == Phase::tiny) {
    for (const Member& member : members_) {
      if (!member.published(tiny_number_)) return member.rank;
    }
  }
  return -1;
}

std::string Lane::title() const {
  const Batch& batch = bound_.batch;
  std::string out(name_of(batch.kind));
  if (!batch.tensors.empty()) {
    append_text(out, text(" of ", shared_.names.text(batch.tensors.front().name)));
    if (batch.tensors.size() > 1) append_text(out, text(" and ", batch.tensors.size() - 1, " more"));
  }
  append_text(out, text(" in ", spec_.label));
  return out;
}

std::string Lane::describe() const {
  if (phase_ == Phase::idle) return {};
  std::string out = title();
  const int rank = waits_for_rank();
  if (rank >= 0) append_text(out, text(": waits for rank ", rank));
  if (phase_ == Phase::run) append_text(out, text(", ", run_.describe()));
  if (!queue_.empty())
    append_text(out, text("; ", queue_.size(), queue_.size() == 1 ? " more batch" : " more batches", " behind it"));
  return out;
}

Status Lane::overdue() const {
  const int rank = waits_for_rank();
  std::string words =
      text(title(), ": not finished within ", static_cast<double>(shared_.options.op_deadline_ms) / 1000, " s; rank ",
           spec_.ranks[static_cast<size_t>(spec_.me)]);
  words += rank >= 0 ? text(" waits for rank ", rank) : std::string(" still works on it");
  return Status(Code::aborted, std::move(words), rank);
}

// ---- the timeline ----

trace::Activity Lane::main_activity() const {
  using trace::Activity;
  const bool shared_memory = surroundings_.shared_memory();
  switch (bound_.batch.kind) {
    case OpKind::allreduce:
      return shared_memory ? Activity::SHM_ALLREDUCE : Activity::TCP_ALLREDUCE;
    case OpKind::allgather:
      return shared_memory ? Activity::SHM_ALLGATHER : Activity::TCP_ALLGATHER;
    case OpKind::broadcast:
      return shared_memory ? Activity::SHM_BCAST : Activity::TCP_BCAST;
    case OpKind::alltoall:
      return shared_memory ? Activity::SHM_ALLTOALL : Activity::TCP_ALLTOALL;
    case OpKind::reducescatter:
      return shared_memory ? Activity::SHM_REDUCESCATTER : Activity::TCP_REDUCESCATTER;
    case OpKind::barrier:
    case OpKind::join:
      break;
  }
  return Activity::BARRIER;
}

void Lane::begin_operation(Time now) {
  for (const BatchTensor& tensor : bound_.batch.tensors) {
    shared_.timeline.operation_begin(tensor.name, bound_.batch.kind, now);
  }
}

void Lane::end_operation(Time now) {
  for (const BatchTensor& tensor : bound_.batch.tensors) {
    const auto count = static_cast<int64_t>(tensor.count_elems);
    shared_.timeline.operation_end(tensor.name, bound_.batch.dtype, Shape({count}), now);
  }
}

void Lane::begin_activity(trace::Activity activity, Time now) {
  for (const BatchTensor& tensor : bound_.batch.tensors) shared_.timeline.activity_begin(tensor.name, activity, now);
}

void Lane::end_activity(Time now) {
  for (const BatchTensor& tensor : bound_.batch.tensors) shared_.timeline.activity_end(tensor.name, now);
}

}  // namespace halay::execute
