#include "collective/builder.h"

#include <utility>

#include "base/check.h"

namespace halay::collective {

std::vector<Part> even_parts(size_t count_elems, int part_count) {
  const auto parts = static_cast<size_t>(part_count);
  std::vector<Part> result(parts);
  const size_t each = count_elems / parts, extra = count_elems % parts;
  size_t offset = 0;
  for (size_t i = 0; i < parts; ++i) {
    result[i] = {offset, each + (i < extra ? 1 : 0)};
    offset += result[i].count;
  }
  return result;
}

std::vector<Part> parts_of(std::span<const size_t> counts) {
  std::vector<Part> result(counts.size());
  size_t offset = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    result[i] = {offset, counts[i]};
    offset += counts[i];
  }
  return result;
}

size_t largest(std::span<const Part> parts) {
  size_t most = 0;
  for (const Part& part : parts) most = std::max(most, part.count);
  return most;
}

size_t chunk_elems_of(const Surroundings& surroundings, size_t bytes_each) {
  const size_t most = kChunkBytes / bytes_each;
  return surroundings.chunk_elems == 0 ? most : std::min(most, surroundings.chunk_elems);
}

Builder::Builder(std::string_view algorithm, const Problem& problem)
    : bytes_narrow_(bytes_of(problem.dtype)),
      bytes_wide_(bytes_of(accumulator_of(problem.dtype))),
      member_count_(problem.member_count),
      me_(problem.me) {
  schedule_.algorithm = algorithm;
}

void Builder::let_acc_be_output() {
  HALAY_ASSERT(bytes_narrow_ == bytes_wide_);
  schedule_.acc_is_output = true;
}

Step& Builder::add(StepKind kind) {
  schedule_.steps.emplace_back();
  schedule_.steps.back().kind = kind;
  return schedule_.steps.back();
}

void Builder::note(const Region& region) {
  const size_t end = region.offset_elems + region.count_elems;
  if (region.buffer == Buffer::staging) schedule_.staging_elems = std::max(schedule_.staging_elems, end);
  if (region.buffer == Buffer::acc) schedule_.acc_elems = std::max(schedule_.acc_elems, end);
}

Post Builder::send(int peer, const Region& src) {
  Step& step = add(StepKind::post_send);
  step.peer = static_cast<int16_t>(peer);
  step.src = src;
  note(src);
  schedule_.sent_bytes += src.count_elems * (src.buffer == Buffer::acc ? bytes_wide_ : bytes_narrow_);
  return static_cast<Post>(schedule_.steps.size() - 1);
}

Post Builder::recv(int peer, const Region& dst) {
  Step& step = add(StepKind::post_recv);
  step.peer = static_cast<int16_t>(peer);
  step.dst = dst;
  note(dst);
  return static_cast<Post>(schedule_.steps.size() - 1);
}

void Builder::wait(Post& post) {
  if (post == kNoPost) return;
  const bool is_send = schedule_.steps[post].kind == StepKind::post_send;
  add(is_send ? StepKind::wait_send : StepKind::wait_recv).index = post;
  post = kNoPost;
}

void Builder::wait_all(std::vector<Post>& posts) {
  for (Post& post : posts) wait(post);
}

void Builder::copy(const Region& dst, const Region& src) {
  if (dst.count_elems == 0) return;
  Step& step = add(StepKind::copy);
  step.dst = dst;
  step.src = src;
  note(dst);
  note(src);
}

void Builder::load(const Region& dst, const Region& src) {
  if (dst.count_elems == 0) return;
  Step& step = add(StepKind::load);
  step.dst = dst;
  step.src = src;
  note(dst);
  note(src);
}

void Builder::reduce(const Region& dst, const Region& left, const Region& right) {
  if (dst.count_elems == 0) return;
  Step& step = add(StepKind::reduce);
  step.dst = dst;
  step.src = left;
  step.src2 = right;
  note(dst);
  note(left);
  note(right);
}

void Builder::finish(const Region& dst, const Region& src) {
  if (dst.count_elems == 0) return;
  Step& step = add(StepKind::finish);
  step.dst = dst;
  step.src = src;
  note(dst);
  note(src);
}

void Builder::reduce_all(const Region& dst, std::span<const Region> sources) {
  if (dst.count_elems == 0) return;
  HALAY_ASSERT(sources.size() == static_cast<size_t>(member_count_));
  Step& step = add(StepKind::reduce_all);
  step.dst = dst;
  step.first_source = static_cast<uint32_t>(schedule_.sources.size());
  step.source_count = static_cast<uint32_t>(sources.size());
  note(dst);
  for (const Region& source : sources) note(source);
  schedule_.sources.insert(schedule_.sources.end(), sources.begin(), sources.end());
}

void Builder::signal(uint32_t flag, uint32_t value) {
  Step& step = add(StepKind::signal);
  step.index = flag;
  step.value = value;
}

void Builder::wait_flag(int peer, uint32_t flag, uint32_t value) {
  Step& step = add(StepKind::wait_flag);
  step.peer = static_cast<int16_t>(peer);
  step.index = flag;
  step.value = value;
}

void Builder::wait_flags(uint32_t flag, uint32_t value) {
  for (int distance = 1; distance < member_count_; ++distance) {
    wait_flag(after(me_, distance, member_count_), flag, value);
  }
}

Schedule Builder::take(uint32_t rounds, uint32_t flag_span) {
  schedule_.rounds = rounds;
  schedule_.flag_span = flag_span;
  schedule_.uses_windows = flag_span > 0;
  if (schedule_.acc_is_output) schedule_.acc_elems = 0;
  return std::move(schedule_);
}

}  // namespace halay::collective
