// N Executors in one process over a FakeWorld, and operations with data on all of them, checked against a plain
// reference.
// Thread: the test's; run_threads() makes one thread a rank.   Owns: executors, buffers.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "execute/executor.h"
#include "execute/fake_fabric_for_test.h"
#include "math/reference_for_test.h"

namespace halay::execute {

class IgnoreFrames : public transport::FrameSink {
 public:
  void on_frame(int32_t, transport::FrameKind, uint64_t, std::span<const std::byte>) override {}
};

class TestWorld {
 public:
  explicit TestWorld(int32_t size, FakeOptions fake = {}, ExecutorOptions options = {}) : fake_(size, std::move(fake)) {
    for (int32_t rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(fake_.fabric(rank), options));
    }
  }

  int32_t size() const { return fake_.size(); }
  FakeWorld& fake() { return fake_; }
  Executor& executor(int32_t rank) { return at(rank).executor; }
  NameTable& names(int32_t rank) { return at(rank).names; }
  trace::Timeline& timeline(int32_t rank) { return at(rank).timeline; }
  std::vector<Finished>& finished(int32_t rank) { return at(rank).finished; }

  void add_lane(uint64_t lane, const std::vector<int32_t>& ranks, bool windows) {
    for (size_t me = 0; me < ranks.size(); ++me) {
      executor(ranks[me]).add_lane({lane, ranks, static_cast<int>(me), windows, "set " + std::to_string(lane)});
    }
  }
  void add_lane(uint64_t lane, bool windows) {
    std::vector<int32_t> ranks(static_cast<size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    add_lane(lane, ranks, windows);
  }

  bool step(int32_t rank, Time now) {
    bool moved = fake_.fabric(rank).progress(sink_, now);
    moved |= executor(rank).progress(now);
    executor(rank).take_finished(at(rank).finished);
    return moved;
  }
  // One after the other until nothing moves any more.
  void run(Time now = {}) {
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t rank = 0; rank < size(); ++rank) moved |= step(rank, now);
    }
  }
  // All at once, until all are idle.
  void run_threads() {
    std::atomic<int32_t> busy = size();
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < size(); ++rank) {
      threads.emplace_back([this, rank, &busy] {
        bool counted = false;
        while (busy.load() > 0) {  // an idle rank still moves the bytes that others wait for
          if (!step(rank, {})) std::this_thread::yield();
          if (!counted && executor(rank).idle()) {
            counted = true;
            --busy;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  bool idle() {
    for (int32_t rank = 0; rank < size(); ++rank) {
      if (!executor(rank).idle()) return false;
    }
    return true;
  }

 private:
  struct Rank {
    Rank(FakeFabric& fabric, const ExecutorOptions& options)
        : timeline(names), executor(fabric, options, names, timeline) {}
    NameTable names;
    trace::Timeline timeline;
    Executor executor;
    std::vector<Finished> finished;
  };
  Rank& at(int32_t rank) { return *ranks_[static_cast<size_t>(rank)]; }

  FakeWorld fake_;
  IgnoreFrames sink_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// What one operation is; the same on all members.
struct OpSpec {
  OpKind kind = OpKind::allreduce;
  DType dtype = DType::float32;
  ReduceOp reduce_op = ReduceOp::sum;
  math::Scale scale;
  int root = 0;                 // index into members
  std::vector<size_t> tensors;  // elements of each, for fusable kinds and broadcast
  std::vector<size_t> counts;   // as Batch::counts
  bool in_place = false;
  std::vector<int32_t> lane_ranks;
  std::vector<int> members;  // empty: all of the lane
};

// One operation with its buffers on all members.
class TestOp {
 public:
  TestOp(OpSpec spec, uint64_t id, uint64_t seed) : spec_(std::move(spec)), id_(id) {
    if (spec_.members.empty()) {
      spec_.members.resize(spec_.lane_ranks.size());
      std::iota(spec_.members.begin(), spec_.members.end(), 0);
    }
    std::mt19937_64 random(seed);
    for (int me = 0; me < member_count(); ++me) {
      Data data;
      for (const size_t count : input_counts(me)) data.inputs.push_back(random_values(random, count));
      for (const size_t count : output_counts(me)) data.outputs.emplace_back(count * width(), std::byte{0x5a});
      if (spec_.in_place) data.outputs = data.inputs;
      data.before = data.inputs;
      data_.push_back(std::move(data));
    }
  }

  int member_count() const { return static_cast<int>(spec_.members.size()); }
  size_t width() const { return bytes_of(spec_.dtype); }
  const OpSpec& spec() const { return spec_; }
  const std::vector<std::vector<std::byte>>& outputs(int member) const {
    return data_[static_cast<size_t>(member)].outputs;
  }

  void submit(TestWorld& world, uint64_t lane) {
    for (size_t i = 0; i < spec_.lane_ranks.size(); ++i) submit(world, lane, static_cast<int>(i));
  }
  // On one member of the lane (by its index there).
  void submit(TestWorld& world, uint64_t lane, int lane_member) {
    const auto position = std::ranges::find(spec_.members, lane_member);
    const int me = position == spec_.members.end() ? -1 : static_cast<int>(position - spec_.members.begin());
    const int32_t rank = spec_.lane_ranks[static_cast<size_t>(lane_member)];
    BoundBatch bound = batch(me < 0 ? -1 : lane_member, std::max(me, 0), world.names(rank));
    bound.bindings.assign(bound.batch.tensors.size(), {});
    if (me >= 0) bind(bound, data_[static_cast<size_t>(me)]);
    world.executor(rank).enqueue(lane, std::move(bound), {});
  }

  // Every member has the right result, and untouched inputs.
  void check(bool exact) const {
    const Bytes reduction = traits_of(spec_.kind).reduces ? reduced() : Bytes();
    for (int me = 0; me < member_count(); ++me) {
      const Data& data = data_[static_cast<size_t>(me)];
      EXPECT_TRUE(spec_.in_place || data.inputs == data.before) << "member " << me << " finds its input changed";
      const Bytes got = joined(data.outputs);
      const Bytes want = expected(me, reduction);
      ASSERT_EQ(got.size(), want.size());
      if (exact) {
        EXPECT_TRUE(got == want) << "member " << me << " of " << member_count() << ": " << words();
      } else {
        EXPECT_TRUE(near(got, want)) << "member " << me << " of " << member_count() << ": " << words();
      }
    }
  }
  // All members hold the same bits (kinds with equal outputs).
  void check_same() const {
    for (int me = 1; me < member_count(); ++me) EXPECT_TRUE(outputs(me) == outputs(0)) << words();
  }
  std::string words() const {
    return std::string(name_of(spec_.kind)) + " " + std::string(name_of(spec_.dtype)) + " " +
           std::string(name_of(spec_.reduce_op)) + ", " + std::to_string(joined(data_[0].before).size() / width()) +
           " elements in " + std::to_string(data_[0].before.size()) + " tensors" + (spec_.in_place ? ", in place" : "");
  }

 private:
  using Bytes = std::vector<std::byte>;
  struct Data {
    std::vector<Bytes> inputs, outputs, before;
  };

  size_t total() const { return std::accumulate(spec_.tensors.begin(), spec_.tensors.end(), size_t{0}); }
  size_t count_at(int source, int target) const {
    return spec_.counts[static_cast<size_t>(source * member_count() + target)];
  }
  std::vector<size_t> input_counts(int me) const {
    switch (spec_.kind) {
      case OpKind::allreduce:
      case OpKind::broadcast:
        return spec_.tensors;
      case OpKind::allgather:
        return {spec_.counts[static_cast<size_t>(me)]};
      case OpKind::reducescatter:
        return {std::accumulate(spec_.counts.begin(), spec_.counts.end(), size_t{0})};
      case OpKind::alltoall: {
        size_t sum = 0;
        for (int to = 0; to < member_count(); ++to) sum += count_at(me, to);
        return {sum};
      }
      default:
        return {};
    }
  }
  std::vector<size_t> output_counts(int me) const {
    switch (spec_.kind) {
      case OpKind::allgather:
        return {std::accumulate(spec_.counts.begin(), spec_.counts.end(), size_t{0})};
      case OpKind::reducescatter:
        return {spec_.counts[static_cast<size_t>(me)]};
      case OpKind::alltoall: {
        size_t sum = 0;
        for (int from = 0; from < member_count(); ++from) sum += count_at(from, me);
        return {sum};
      }
      default:
        return input_counts(me);
    }
  }

  BoundBatch batch(int lane_member, int me, NameTable& names) const {
    BoundBatch bound;
    bound.id = id_;
    Batch& batch = bound.batch;
    batch.kind = spec_.kind;
    batch.dtype = spec_.dtype;
    batch.reduce_op = spec_.reduce_op;
    batch.prescale = spec_.scale.prescale;
    batch.postscale = spec_.scale.postscale;
    batch.divisor = spec_.scale.divisor;
    batch.root = spec_.root;
    batch.members = spec_.members;
    batch.me = lane_member;
    batch.counts = spec_.counts;
    for (const size_t count : input_counts(me)) {
      const NameId name = names.intern("op" + std::to_string(id_) + "/t" + std::to_string(batch.tensors.size()));
      batch.tensors.push_back({name, static_cast<Ticket>(id_), count});
      batch.count_elems += count;
    }
    return bound;
  }
  void bind(BoundBatch& bound, Data& data) const {
    for (size_t i = 0; i < data.inputs.size(); ++i) {
      Binding& binding = bound.bindings[i];
      binding.output = data.outputs[i].data();
      binding.input = spec_.in_place ? binding.output : data.inputs[i].data();
      binding.input_elems = data.inputs[i].size() / width();
      binding.output_elems = data.outputs[i].size() / width();
    }
  }

  Bytes random_values(std::mt19937_64& random, size_t count) const {
    return math::reference::with_type(spec_.dtype, [&](auto zero) {
      using T = decltype(zero);
      Bytes bytes(count * sizeof(T));
      for (size_t i = 0; i < count; ++i) {
        const T value = one_random<T>(random);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
      return bytes;
    });
  }
  template <class T>
  static T one_random(std::mt19937_64& random) {
    const double unit = static_cast<double>(random() % 2000001) / 1e6 - 1.0;
    if constexpr (std::is_same_v<T, math::reference::Bool>)
      return {static_cast<uint8_t>(random() & 1)};
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(random());
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(unit * 3);
    else
      return T::rounded(static_cast<float>(unit * 3));
  }

  static Bytes joined(const std::vector<Bytes>& parts) {
    Bytes all;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  Bytes slice(const Bytes& from, size_t first, size_t count) const {
    const auto begin = from.begin() + static_cast<ptrdiff_t>(first * width());
    return Bytes(begin, begin + static_cast<ptrdiff_t>(count * width()));
  }
  Bytes reduced() const {
    std::vector<Bytes> all;
    for (const Data& data : data_) all.push_back(joined(data.before));
    return math::reference::with_type(spec_.dtype, [&](auto zero) {
      using T = decltype(zero);
      Bytes out(all[0].size());
      std::vector<T> values(all.size());
      for (size_t at = 0; at < out.size(); at += sizeof(T)) {
        for (size_t i = 0; i < all.size(); ++i) std::memcpy(&values[i], all[i].data() + at, sizeof(T));
        const T result = math::reference::reduce_all<T>(spec_.reduce_op, values, spec_.scale);
        std::memcpy(out.data() + at, &result, sizeof(T));
      }
      return out;
    });
  }
  Bytes expected(int me, const Bytes& reduction) const {
    switch (spec_.kind) {
      case OpKind::allreduce:
        return reduction;
      case OpKind::broadcast:
        return joined(data_[static_cast<size_t>(spec_.root)].before);
      case OpKind::allgather: {
        Bytes all;
        for (const Data& data : data_) all.insert(all.end(), data.before[0].begin(), data.before[0].end());
        return all;
      }
      case OpKind::reducescatter: {
        const auto first = spec_.counts.begin();
        return slice(reduction, std::accumulate(first, first + me, size_t{0}), spec_.counts[static_cast<size_t>(me)]);
      }
      case OpKind::alltoall: {
        Bytes all;
        for (int from = 0; from < member_count(); ++from) {
          size_t offset = 0;
          for (int to = 0; to < me; ++to) offset += count_at(from, to);
          const Bytes part = slice(data_[static_cast<size_t>(from)].before[0], offset, count_at(from, me));
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      }
      default:
        return {};
    }
  }
  // For algorithms with another order of sums.
  bool near(const Bytes& got, const Bytes& want) const {
    return math::reference::with_type(spec_.dtype, [&](auto zero) {
      using T = decltype(zero);
      const double tolerance = widens(spec_.dtype) ? 0.02 : 1e-5;
      for (size_t at = 0; at < got.size(); at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, got.data() + at, sizeof(T));
        std::memcpy(&b, want.data() + at, sizeof(T));
        const double x = static_cast<double>(math::reference::load(a, 1.0));
        const double y = static_cast<double>(math::reference::load(b, 1.0));
        if (std::fabs(x - y) > tolerance * (1 + std::fabs(y))) return false;
      }
      return true;
    });
  }

  OpSpec spec_;
  uint64_t id_;
  std::vector<Data> data_;
};

inline std::vector<int32_t> all_ranks(int32_t size) {
  std::vector<int32_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace halay::execute
