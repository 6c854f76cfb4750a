#include "raw/raw_communicator.h"

#include <sched.h>

#include <cstring>
#include <thread>

#include "base/text.h"
#include "math/kernels.h"

namespace halay::bench {
namespace {

constexpr uint64_t kLane = 1;
// Turns of waiting between two looks at the channels and, with a core for each rank, between two yields.
constexpr uint64_t kTurnsOfPause = 4096;

class IgnoreFrames : public transport::FrameSink {
 public:
  void on_frame(int32_t, transport::FrameKind, uint64_t, std::span<const std::byte>) override {}
};

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

RawCommunicator::RawCommunicator(transport::Fabric& fabric) : fabric_(fabric), me_(fabric.rank()) {
  lane_.lane = kLane;
  lane_.me = me_;
  lane_.windows = true;
  lane_.label = "raw";
  for (int32_t rank = 0; rank < fabric.size(); ++rank) lane_.ranks.push_back(rank);
  crowded_ = static_cast<unsigned>(fabric.size()) > std::thread::hardware_concurrency();
}

RawCommunicator::~RawCommunicator() { fabric_.close_windows(kLane); }

Result<std::unique_ptr<RawCommunicator>> RawCommunicator::create(transport::Fabric& fabric, int64_t timeout_ms) {
  std::unique_ptr<RawCommunicator> made(new RawCommunicator(fabric));
  HALAY_RETURN_IF_ERROR(fabric.open_windows(kLane, made->lane_.ranks));
  const Time deadline = system_clock().now().plus_ms(timeout_ms);
  IgnoreFrames sink;
  while (!fabric.windows_ready(kLane)) {
    const Time now = system_clock().now();
    fabric.progress(sink, now);
    HALAY_RETURN_IF_ERROR(fabric.status());
    if (now > deadline) return Status::timeout(text("rank ", fabric.rank(), ": not all windows came"));
    sched_yield();
  }
  for (const int32_t rank : made->lane_.ranks) {
    execute::Member member;
    member.rank = rank;
    member.channel = rank == made->me_ ? nullptr : fabric.channel(rank);
    member.window = fabric.window(kLane, rank);
    made->members_.push_back(member);
  }
  made->surroundings_ = std::make_unique<execute::LaneSurroundings>(fabric, made->lane_, made->options_);
  made->sources_.resize(made->members_.size());
  return made;
}

Status RawCommunicator::pause(uint64_t turn) {
  if (!crowded_ && turn % kTurnsOfPause != kTurnsOfPause - 1) {
    pause_core();
    return Status();
  }
  if (turn % kTurnsOfPause == kTurnsOfPause - 1) {
    IgnoreFrames sink;
    fabric_.progress(sink, system_clock().now());
    HALAY_RETURN_IF_ERROR(fabric_.status());
  }
  sched_yield();
  return Status();
}

Status RawCommunicator::tiny(const void* input, void* output, size_t count_elems, DType dtype, ReduceOp op) {
  const uint64_t number = ++tiny_number_;
  const execute::Member& self = members_[static_cast<size_t>(me_)];
  std::memcpy(self.payload(number), input, count_elems * bytes_of(dtype));
  self.publish(number);
  for (size_t i = 0; i < members_.size(); ++i) {
    for (uint64_t turn = 0; !members_[i].published(number); ++turn) HALAY_RETURN_IF_ERROR(pause(turn));
    sources_[i] = members_[i].payload(number);
  }
  if (count_elems > 0) math::reduce_all(dtype, op, output, sources_.data(), sources_.size(), count_elems, {});
  algorithm_ = "tiny";
  return Status();
}

Status RawCommunicator::barrier() { return tiny(nullptr, nullptr, 0, DType::uint8, ReduceOp::sum); }

Status RawCommunicator::prepare(size_t count_elems, DType dtype, ReduceOp op) {
  if (plan_ != nullptr && problem_.count_elems == count_elems && problem_.dtype == dtype && problem_.reduce_op == op) {
    return Status();
  }
  problem_ = {};
  problem_.kind = OpKind::allreduce;
  problem_.dtype = dtype;
  problem_.reduce_op = op;
  problem_.member_count = size();
  problem_.me = me_;
  problem_.count_elems = count_elems;
  HALAY_TRY(plan_, plans_.get(problem_, surroundings_->of(problem_.kind, true), 0));
  const Schedule& schedule = plan_->schedule;
  staging_.resize(schedule.staging_elems * bytes_of(dtype));
  acc_.resize(schedule.acc_elems * bytes_of(accumulator_of(dtype)));
  return Status();
}

Status RawCommunicator::allreduce(const void* input, void* output, size_t count_elems, DType dtype, ReduceOp op) {
  const size_t size_bytes = count_elems * bytes_of(dtype);
  if (size_bytes <= execute::kTinyPayloadBytes) return tiny(input, output, count_elems, dtype, op);
  HALAY_RETURN_IF_ERROR(prepare(count_elems, dtype, op));
  const Schedule& schedule = plan_->schedule;
  buffers_.input.set(input, size_bytes);
  buffers_.output.set(output, size_bytes);
  buffers_.staging.set(staging_.data(), staging_.size());
  if (schedule.acc_is_output) {
    buffers_.acc = buffers_.output;
  } else {
    buffers_.acc.set(acc_.data(), acc_.size());
  }
  execute::ScheduleRun::Spec spec;
  spec.schedule = &schedule;
  spec.buffers = &buffers_;
  spec.members = members_;
  spec.arithmetic = {dtype, op, {}};
  spec.me = me_;
  spec.lane = kLane;
  spec.flag_base = flag_base_;
  spec.window_offset_bytes = (window_number_ & 1) * (fabric_.window_bytes() / 2);
  run_.start(spec);
  algorithm_ = schedule.algorithm;
  return run();
}

Status RawCommunicator::run() {
  const Schedule& schedule = plan_->schedule;
  IgnoreFrames sink;
  size_t before = 0;
  for (uint64_t turn = 0; run_.advance(SIZE_MAX) != execute::Outcome::done; ++turn) {
    if (run_.steps_done() != before) turn = 0;
    before = run_.steps_done();
    if (!schedule.uses_windows) fabric_.progress(sink, system_clock().now());
    HALAY_RETURN_IF_ERROR(pause(turn));
  }
  if (schedule.uses_windows) {
    flag_base_ += schedule.flag_span;
    ++window_number_;
  }
  return Status();
}

}  // namespace halay::bench
