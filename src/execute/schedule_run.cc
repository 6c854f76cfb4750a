#include "execute/schedule_run.h"

#include "base/check.h"
#include "base/text.h"

namespace halay::execute {
namespace {

// About the last-level cache that the members share. What all of them read and write is set against it.
constexpr size_t kCacheBytes = size_t{32} << 20;

}  // namespace

void ScheduleRun::start(const Spec& spec) {
  spec_ = spec;
  next_ = 0;
  width_ = bytes_of(spec.arithmetic.dtype);
  acc_width_ = bytes_of(accumulator_of(spec.arithmetic.dtype));
  const size_t touched_bytes = spec.buffers->input.size_bytes() + spec.buffers->output.size_bytes();
  larger_than_cache_ = touched_bytes >= kCacheBytes / spec.members.size();
  transfers_.assign(spec.schedule->steps.size(), {});
}

void ScheduleRun::drop() {
  spec_ = {};
  next_ = 0;
  transfers_.clear();
}

Outcome ScheduleRun::advance(size_t budget_bytes) {
  const std::vector<Step>& steps = spec_.schedule->steps;
  size_t spent = 0;
  while (next_ < steps.size()) {
    const Step& step = steps[next_];
    if (!satisfied(step)) return Outcome::waiting;
    if (spent >= budget_bytes) return Outcome::working;
    spent += run(step, next_);
    ++next_;
  }
  return Outcome::done;
}

bool ScheduleRun::satisfied(const Step& step) const {
  switch (step.kind) {
    case StepKind::wait_send:
    case StepKind::wait_recv:
      return transfers_[step.index].done;
    case StepKind::wait_flag:
      return spec_.members[static_cast<size_t>(step.peer)].flag(step.index).load(std::memory_order_acquire) >=
             spec_.flag_base + step.value;
    default:
      return true;
  }
}

size_t ScheduleRun::run(const Step& step, size_t index) {
  switch (step.kind) {
    case StepKind::post_send:
    case StepKind::post_recv:
      post(step, index);
      return 0;
    case StepKind::wait_send:
    case StepKind::wait_recv:
    case StepKind::wait_flag:
      return 0;
    case StepKind::copy:
      copy(step);
      break;
    case StepKind::load:
      load(step);
      break;
    case StepKind::reduce:
      reduce(step);
      break;
    case StepKind::finish:
      finish(step);
      break;
    case StepKind::reduce_all:
      reduce_all(step);
      break;
    case StepKind::signal:
      signal(step);
      return 0;
  }
  return step.dst.count_elems * width(step.dst.buffer);
}

std::byte* ScheduleRun::run_at(const Region& region, size_t done, size_t& want) const {
  const size_t width = this->width(region.buffer);
  const size_t offset = (region.offset_elems + done) * width;
  if (region.buffer == Buffer::window) {
    return spec_.members[static_cast<size_t>(region.member)].window.data + spec_.window_offset_bytes + offset;
  }
  const Buffers& buffers = *spec_.buffers;
  const Extent& extent = region.buffer == Buffer::input     ? buffers.input
                         : region.buffer == Buffer::output  ? buffers.output
                         : region.buffer == Buffer::staging ? buffers.staging
                                                            : buffers.acc;
  const std::span<std::byte> bytes = extent.from(offset);
  want = std::min(want, bytes.size() / width);
  return bytes.data();
}

void ScheduleRun::post(const Step& step, size_t index) {
  const Region& region = step.kind == StepKind::post_send ? step.src : step.dst;
  size_t count = region.count_elems;
  std::byte* data = count == 0 ? nullptr : run_at(region, 0, count);
  HALAY_ASSERT(count == region.count_elems);  // the lane has packed what is sent (lane.cc)
  const size_t size_bytes = count * width(region.buffer);
  transport::Channel* channel = spec_.members[static_cast<size_t>(step.peer)].channel;
  HALAY_ASSERT(channel != nullptr);
  if (step.kind == StepKind::post_send) {
    channel->post_send(spec_.lane, {data, size_bytes}, &transfers_[index]);
  } else {
    channel->post_recv(spec_.lane, {data, size_bytes}, &transfers_[index]);
  }
}

void ScheduleRun::copy(const Step& step) {
  const size_t count = step.dst.count_elems;
  for (size_t done = 0, n = 0; done < count; done += n) {
    n = count - done;
    const std::byte* src = run_at(step.src, done, n);
    std::byte* dst = run_at(step.dst, done, n);
    if (dst != src) math::copy(dst, src, n * width_, stores_to(step.dst.buffer));
  }
}

void ScheduleRun::load(const Step& step) {
  const size_t count = step.dst.count_elems;
  for (size_t done = 0, n = 0; done < count; done += n) {
    n = count - done;
    const std::byte* src = run_at(step.src, done, n);
    std::byte* dst = run_at(step.dst, done, n);
    math::load(spec_.arithmetic.dtype, dst, src, n, spec_.arithmetic.scale.prescale);
  }
}

void ScheduleRun::reduce(const Step& step) {
  const size_t count = step.dst.count_elems;
  const DType accumulator = accumulator_of(spec_.arithmetic.dtype);
  for (size_t done = 0, n = 0; done < count; done += n) {
    n = count - done;
    const std::byte* left = run_at(step.src, done, n);
    const std::byte* right = run_at(step.src2, done, n);
    std::byte* dst = run_at(step.dst, done, n);
    math::reduce(accumulator, spec_.arithmetic.op, dst, left, right, n);
  }
}

void ScheduleRun::finish(const Step& step) {
  const size_t count = step.dst.count_elems;
  for (size_t done = 0, n = 0; done < count; done += n) {
    n = count - done;
    const std::byte* src = run_at(step.src, done, n);
    std::byte* dst = run_at(step.dst, done, n);
    math::finish(spec_.arithmetic.dtype, dst, src, n, spec_.arithmetic.scale);
  }
}

void ScheduleRun::reduce_all(const Step& step) {
  const size_t count = step.dst.count_elems;
  const std::span<const Region> regions(spec_.schedule->sources.data() + step.first_source, step.source_count);
  sources_.resize(step.source_count);
  const Arithmetic& arithmetic = spec_.arithmetic;
  for (size_t done = 0, n = 0; done < count; done += n) {
    n = count - done;
    std::byte* dst = run_at(step.dst, done, n);
    for (size_t i = 0; i < regions.size(); ++i) sources_[i] = run_at(regions[i], done, n);
    math::reduce_all(arithmetic.dtype, arithmetic.op, dst, sources_.data(), sources_.size(), n, arithmetic.scale,
                     stores_to(step.dst.buffer));
  }
}

void ScheduleRun::signal(const Step& step) {
  std::atomic<uint64_t>& flag = spec_.members[static_cast<size_t>(spec_.me)].flag(step.index);
  flag.store(spec_.flag_base + step.value, std::memory_order_release);
  if (spec_.announce_to != nullptr) spec_.announce_to->announce(spec_.lane);
}

int ScheduleRun::waits_for() const {
  if (spec_.schedule == nullptr || next_ >= spec_.schedule->steps.size()) return -1;
  const Step& step = spec_.schedule->steps[next_];
  if (satisfied(step)) return -1;
  if (step.kind == StepKind::wait_flag) return step.peer;
  return spec_.schedule->steps[step.index].peer;
}

std::string ScheduleRun::describe() const {
  if (spec_.schedule == nullptr) return {};
  const std::vector<Step>& steps = spec_.schedule->steps;
  std::string out = text("step ", next_, " of ", steps.size(), " of ", spec_.schedule->algorithm);
  const int member = waits_for();
  if (member >= 0) {
    append_text(out, text(" (", name_of(steps[next_].kind), "), waits for rank ",
                          spec_.members[static_cast<size_t>(member)].rank));
  }
  return out;
}

}  // namespace halay::execute
