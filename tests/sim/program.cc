#include "program.h"

#include <algorithm>
#include <numeric>

namespace halay::sim {
namespace {

constexpr int64_t kDeadlineMs = 5000;

// A tensor that comes again and again, alone or with its group.
struct Tensor {
  std::string name;
  Request request;
  std::vector<int64_t> rows;  // by member, for kinds whose rows may differ
};

struct Unit {
  std::string group;
  std::vector<Tensor> tensors;
};

class SetMaker {
 public:
  SetMaker(Random& random, SetProgram& set, bool with_stalls)
      : random_(random), set_(set), p_(static_cast<int>(set.ranks.size())), with_stalls_(with_stalls) {}

  void make() {
    set_.actions.resize(static_cast<size_t>(p_));
    const int unit_count = static_cast<int>(random_.between(1, 6));
    for (int i = 0; i < unit_count; ++i) units_.push_back(make_unit(i));
    const int epoch_count = static_cast<int>(random_.between(1, 3));
    for (int epoch = 0; epoch < epoch_count; ++epoch) make_epoch(!with_stalls_ && random_.chance(50));
    if (with_stalls_) make_late_ones();
  }

 private:
  size_t count() const { return static_cast<size_t>(p_); }

  Request make_request() {
    Request request;
    request.kind = static_cast<OpKind>(random_.chance(50) ? 0 : random_.between(0, 5));
    request.dtype = static_cast<DType>(random_.between(0, 12));
    request.reduce_op = random_.pick(std::vector{ReduceOp::sum, ReduceOp::average, ReduceOp::max});
    request.divisor = static_cast<Divisor>(random_.between(0, 1));
    request.root = static_cast<int32_t>(random_.between(0, p_ - 1));
    if (random_.chance(20)) request.prescale = 0.5;
    request.shape = random_.chance(20) ? Shape{random_.between(0, 9), 3} : Shape{random_.between(1, 40)};
    return request;
  }

  Unit make_unit(int index) {
    Unit unit;
    const bool group = random_.chance(25);
    if (group) unit.group = "group" + std::to_string(index);
    const int tensor_count = group ? static_cast<int>(random_.between(1, 4)) : 1;
    for (int i = 0; i < tensor_count; ++i) {
      Tensor tensor;
      tensor.name = "t" + std::to_string(index) + "." + std::to_string(i);
      tensor.request = make_request();
      if (group && random_.chance(80)) tensor.request.kind = OpKind::allreduce;
      change_rows(tensor);
      unit.tensors.push_back(std::move(tensor));
    }
    return unit;
  }

  void change_rows(Tensor& tensor) {
    tensor.rows.clear();
    for (int member = 0; member < p_; ++member) tensor.rows.push_back(random_.between(0, 12));
  }

  // Members join after so many steps; with no join all do all steps.
  void make_epoch(bool join) {
    const int step_count = static_cast<int>(random_.between(1, 6));
    std::vector<int> steps_of(count(), step_count);
    if (join) {
      for (int& steps : steps_of) steps = static_cast<int>(random_.between(0, step_count));
    }
    for (int step = 0; step < step_count; ++step) make_step(step, steps_of);
    if (!join) return;
    for (auto& actions : set_.actions) actions.emplace_back();
    set_.last_joined.push_back(p_ == 1 ? 0 : -1);
  }

  void make_step(int step, const std::vector<int>& steps_of) {
    std::vector<std::vector<size_t>> submissions;
    for (Unit& unit : units_) {
      if (random_.chance(15)) continue;
      for (Tensor& tensor : unit.tensors) {
        if (random_.chance(10)) tensor.request.shape.set_dim(0, random_.between(1, 40));
        if (random_.chance(20)) change_rows(tensor);
      }
      submissions.push_back(add_operations(unit, step, steps_of));
    }
    if (with_stalls_ && p_ > 1 && random_.chance(20)) submissions.push_back({add_lone(step)});
    for (int member = 0; member < p_; ++member) {
      if (steps_of[static_cast<size_t>(member)] <= step) continue;
      random_.shuffle(submissions);
      for (const std::vector<size_t>& operations : submissions) {
        Action action;
        for (const size_t operation : operations) {
          if (set_.operations[operation].asks[static_cast<size_t>(member)]) action.operations.push_back(operation);
        }
        if (!action.operations.empty()) set_.actions[static_cast<size_t>(member)].push_back(std::move(action));
      }
    }
  }

  std::vector<size_t> add_operations(const Unit& unit, int step, const std::vector<int>& steps_of) {
    std::vector<size_t> added;
    std::vector<int> askers;
    for (int member = 0; member < p_; ++member) {
      if (steps_of[static_cast<size_t>(member)] > step) askers.push_back(member);
    }
    Code expected = Code::ok;
    for (const Tensor& tensor : unit.tensors) {
      Operation operation;
      operation.name = tensor.name;
      operation.group = unit.group;
      operation.asks.assign(count(), false);
      for (const int member : askers) operation.asks[static_cast<size_t>(member)] = true;
      operation.takes_part = operation.asks;
      operation.requests.assign(count(), tensor.request);
      for (int member = 0; member < p_; ++member)
        set_rows(operation.requests[static_cast<size_t>(member)], tensor, member);
      const OpKind kind = tensor.request.kind;
      const bool skips = static_cast<int>(askers.size()) < p_;
      if (skips && kind != OpKind::allreduce && kind != OpKind::barrier) expected = Code::mismatch;
      if (askers.size() > 1 && random_.chance(4)) {
        spoil(operation.requests[static_cast<size_t>(random_.pick(askers))]);
        expected = Code::mismatch;
      } else if (random_.chance(1) &&
                 (kind == OpKind::allgather || kind == OpKind::alltoall || kind == OpKind::reducescatter)) {
        for (Request& request : operation.requests) request.shape = Shape{};
        expected = Code::mismatch;
      }
      added.push_back(set_.operations.size());
      set_.operations.push_back(std::move(operation));
    }
    // A rank that means a smaller group.
    if (added.size() > 1 && askers.size() > 1 && random_.chance(5)) {
      set_.operations[added.back()].asks[static_cast<size_t>(random_.pick(askers))] = false;
      expected = Code::mismatch;
    }
    for (const size_t index : added) set_.operations[index].expected = expected;
    return added;
  }

  void set_rows(Request& request, const Tensor& tensor, int member) {
    const int64_t rows = tensor.rows[static_cast<size_t>(member)];
    if (request.kind == OpKind::allgather) request.shape.set_dim(0, rows);
    if (request.kind != OpKind::alltoall) return;
    int64_t left = rows;
    for (int target = 0; target < p_; ++target) {
      request.splits.push_back(target + 1 == p_ ? left : std::min<int64_t>(left, (rows + target) % 4));
      left -= request.splits.back();
    }
    request.shape.set_dim(0, rows);
  }

  // Something that is not the same on all ranks.
  void spoil(Request& request) {
    const ShapeRule rule = traits_of(request.kind).shapes;
    const int64_t way = random_.between(0, 3);
    if (way == 0 || rule == ShapeRule::none) {
      request.kind = request.kind == OpKind::barrier ? OpKind::allreduce : OpKind::barrier;
    } else if (way == 1) {
      request.dtype = request.dtype == DType::float32 ? DType::float64 : DType::float32;
    } else if (way == 2) {
      request.device = DeviceType::cuda;
    } else {
      request.shape = Shape{3, 5, 7, 2};
      if (request.kind == OpKind::alltoall) request.splits.assign(count(), 0);
    }
  }

  // An operation that some never ask for, under a name of its own.
  size_t add_lone(int step) {
    Operation operation;
    operation.name = "lone" + std::to_string(set_.operations.size()) + "." + std::to_string(step);
    operation.requests.assign(count(), make_request());
    for (Request& request : operation.requests) request.kind = OpKind::allreduce;
    operation.asks.assign(count(), false);
    const auto missing = static_cast<size_t>(random_.between(0, p_ - 1));
    for (size_t member = 0; member < count(); ++member)
      operation.asks[member] = member != missing && random_.chance(70);
    operation.asks[(missing + 1) % count()] = true;
    operation.takes_part.assign(count(), true);
    operation.expected = Code::stalled;
    lones_.push_back(set_.operations.size());
    set_.operations.push_back(std::move(operation));
    return set_.operations.size() - 1;
  }

  // Some ask after all, when the others have long had their error.
  void make_late_ones() {
    for (const size_t lone : lones_) {
      for (size_t member = 0; member < count(); ++member) {
        if (set_.operations[lone].asks[member] || random_.chance(50)) continue;
        set_.actions[member].push_back({{lone}, 2 * kDeadlineMs});
        break;
      }
    }
  }

  Random& random_;
  SetProgram& set_;
  const int p_;
  const bool with_stalls_;
  std::vector<Unit> units_;
  std::vector<size_t> lones_;
};

}  // namespace

Program make_program(uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15u + 1);
  Program program;
  program.seed = seed;
  program.world_size = static_cast<int>(random.between(1, 8));
  program.limits.cache_capacity = static_cast<size_t>(random.pick(std::vector<int64_t>{0, 1, 2, 8, 1024}));
  program.limits.fusion_bytes = static_cast<size_t>(random.pick(std::vector<int64_t>{0, 64, 4096, 1 << 20}));
  program.limits.coalesce_us = random.pick(std::vector<int64_t>{0, 100, 1000});
  program.limits.op_deadline_ms = kDeadlineMs;
  program.limits.stall_warning_ms = 1000;
  program.limits.stall_check = random.chance(80);
  program.delay_us_most = random.pick(std::vector<int64_t>{0, 50, 1000, 20000});
  program.pause_us_most = random.pick(std::vector<int64_t>{0, 20, 1000});
  if (random.chance(10)) {
    program.silent_rank = static_cast<int>(random.between(0, program.world_size - 1));
    program.silent_from_ms = random.between(0, 10);
  }
  if (program.silent_rank < 0 && random.chance(15)) {
    program.leaving_rank = static_cast<int>(random.between(0, program.world_size - 1));
    program.leaving_at_us = random.between(0, 20) * random.pick(std::vector<int64_t>{10, 300, 5000});
  }
  const int set_count = static_cast<int>(random.between(1, 3));
  const bool with_stalls = random.chance(20);
  for (int i = 0; i < set_count; ++i) {
    SetProgram& set = program.sets.emplace_back();
    for (int32_t rank = 0; rank < program.world_size; ++rank) {
      if (i == 0 || random.chance(60)) set.ranks.push_back(rank);
    }
    if (set.ranks.empty()) set.ranks.push_back(0);
    SetMaker(random, set, with_stalls).make();
  }
  return program;
}

}  // namespace halay::sim
