// Times halay's raw allreduce (float32 sum, private buffers) over shared memory, and a copy of as many bytes by all
// ranks at once as the bound. One JSON line a size on standard output; see bench/raw.py.
#include <cstdio>
#include <cstring>
#include <memory>

#include "measure.h"
#include "raw/fork_world.h"
#include "raw/raw_communicator.h"

namespace halay::bench {
namespace {

struct FreeMemory {
  void operator()(float* memory) const { free(memory); }
};
using Floats = std::unique_ptr<float[], FreeMemory>;

struct Buffers {
  explicit Buffers(size_t size_bytes)
      : input(static_cast<float*>(malloc(size_bytes))), output(static_cast<float*>(malloc(size_bytes))) {}
  Floats input, output;
};

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  _Exit(4);
}

// The time of one call as the slowest rank sees it, after warming up; the same on all.
template <class Call>
double agreed_once(RawCommunicator& communicator, Call call) {
  double time = 0;
  for (int i = 0; i < 200 && (i < 3 || time < 1e-4); ++i) {
    const double begin = measure_now();
    call();
    time = measure_now() - begin;
    // All must do as many calls: no rank decides by its own clock.
    must(communicator.allreduce(&time, &time, 1, DType::float64, ReduceOp::max));
  }
  return time;
}

template <class Call>
void sample(RawCommunicator& communicator, const measure_plan& plan, measure_samples& samples, Call call) {
  const double time = agreed_once(communicator, call);
  const int calls = measure_calls(time);
  samples.count = measure_sample_count(plan.seconds, time, calls);
  for (int i = 0; i < samples.count; ++i) {
    const double begin = measure_now();
    for (int n = 0; n < calls; ++n) call();
    samples.us[i] = (measure_now() - begin) / calls * 1e6;
  }
}

int run_rank(transport::Fabric& fabric, const measure_plan& plan) {
  auto made = RawCommunicator::create(fabric, 10'000);
  if (!made.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", fabric.rank(), made.status().text().c_str());
    return 3;
  }
  RawCommunicator& communicator = *made.value();
  static measure_samples samples;
  bool right = true;
  for (int s = 0; s < plan.size_count; ++s) {
    const size_t size_bytes = plan.sizes[s], count = size_bytes / sizeof(float);
    Buffers buffers(size_bytes);
    float* input = buffers.input.get();
    float* output = buffers.output.get();
    measure_touch(input, output, count, communicator.rank());
    sample(communicator, plan, samples,
           [&] { must(communicator.allreduce(input, output, count, DType::float32, ReduceOp::sum)); });
    right = right && measure_check(output, count, communicator.size()) != 0;
    const std::string what = "halay:" + std::string(communicator.algorithm());
    if (communicator.rank() == 0) measure_print(what.c_str(), size_bytes, &samples);
    sample(communicator, plan, samples, [&] {
      must(communicator.barrier());
      std::memcpy(output, input, size_bytes);
    });
    if (communicator.rank() == 0) measure_print("copy", size_bytes, &samples);
  }
  must(communicator.barrier());
  if (!right) std::fprintf(stderr, "rank %d: wrong sum\n", communicator.rank());
  return right ? 0 : 1;
}

}  // namespace
}  // namespace halay::bench

int main(int argc, char** argv) {
  measure_plan plan;
  if (!measure_parse(argc, argv, &plan)) return 2;
  return halay::bench::run_forked(
      plan.ranks, "shm", [&](halay::transport::Fabric& fabric) { return halay::bench::run_rank(fabric, plan); });
}
