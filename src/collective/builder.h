// Builds one Schedule, step by step. It counts what the Schedule declares (buffers, bytes sent), so that no algorithm
// does. Private to this room. Thread: one.   Owns: the Schedule until take().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collective/plan.h"

namespace halay::collective {

// A range of elements.
struct Part {
  size_t offset = 0;
  size_t count = 0;
};

inline size_t chunks_in(size_t count_elems, size_t chunk_elems) {
  return (count_elems + chunk_elems - 1) / chunk_elems;
}
// Chunk number `index` of a part; empty beyond its end.
inline Part chunk_of(const Part& part, size_t index, size_t chunk_elems) {
  const size_t begin = std::min(index * chunk_elems, part.count);
  return {part.offset + begin, std::min(chunk_elems, part.count - begin)};
}
// `count_elems` in `part_count` parts that differ by at most one element, the first ones larger.
std::vector<Part> even_parts(size_t count_elems, int part_count);
// Parts of these counts, one after the other.
std::vector<Part> parts_of(std::span<const size_t> counts);
size_t largest(std::span<const Part> parts);
// What a chunk may hold where elements take `bytes_each`.
size_t chunk_elems_of(const Surroundings& surroundings, size_t bytes_each);

inline Region input(const Part& part) { return {Buffer::input, -1, part.offset, part.count}; }
inline Region output(const Part& part) { return {Buffer::output, -1, part.offset, part.count}; }
inline Region staging(const Part& part) { return {Buffer::staging, -1, part.offset, part.count}; }
inline Region acc(const Part& part) { return {Buffer::acc, -1, part.offset, part.count}; }
inline Region window(int member, const Part& part) {
  return {Buffer::window, static_cast<int16_t>(member), part.offset, part.count};
}

// The member `distance` behind `me` in the circle of all.
inline int after(int me, int distance, int member_count) { return (me + distance) % member_count; }
inline int before(int me, int distance, int member_count) {
  return ((me - distance) % member_count + member_count) % member_count;
}

// The step that posted a transfer, until it has been waited for.
using Post = uint32_t;
inline constexpr Post kNoPost = UINT32_MAX;

class Builder {
 public:
  Builder(std::string_view algorithm, const Problem& problem);

  void reserve(size_t step_count) { schedule_.steps.reserve(step_count); }
  // From now on acc is output: only for dtypes that do not widen.
  void let_acc_be_output();

  Post send(int peer, const Region& src);
  Post recv(int peer, const Region& dst);
  // Once: clears `post`. Nothing for kNoPost.
  void wait(Post& post);
  void wait_all(std::vector<Post>& posts);
  // Those below do nothing for empty regions.
  void copy(const Region& dst, const Region& src);
  void load(const Region& dst, const Region& src);
  void reduce(const Region& dst, const Region& left, const Region& right);
  void finish(const Region& dst, const Region& src);
  // `sources`: one for each member.
  void reduce_all(const Region& dst, std::span<const Region> sources);
  void signal(uint32_t flag, uint32_t value);
  void wait_flag(int peer, uint32_t flag, uint32_t value);
  // Those of all others.
  void wait_flags(uint32_t flag, uint32_t value);

  // rounds: see Schedule. flag_span: the highest value of any flag.
  Schedule take(uint32_t rounds, uint32_t flag_span = 0);

 private:
  Step& add(StepKind kind);
  void note(const Region& region);

  Schedule schedule_;
  size_t bytes_narrow_, bytes_wide_;
  int member_count_, me_;
};

}  // namespace halay::collective
