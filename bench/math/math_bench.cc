// How fast the kernels are beside what memory allows: `copy` is the bound (one read, one write), every other line says
// its bytes as read plus written, so that rates compare. Run: build/bench/bench/math/math_bench
// [--benchmark_filter=float32]
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "math/internal/dispatch.h"

namespace halay::math {
namespace {

// Bytes of one array: in the first-level cache, the second, the third, and beyond.
const std::vector<int64_t> kSizes = {8, 4 << 10, 256 << 10, 4 << 20, 64 << 20};

std::vector<std::vector<char>> arrays(size_t count, size_t size_bytes) {
  std::vector<std::vector<char>> out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(size_bytes + 64, static_cast<char>(i));
  return out;
}

void say_bytes(benchmark::State& state, size_t per_pass) {
  state.SetBytesProcessed(static_cast<int64_t>(per_pass) * state.iterations());
}

void copy_bound(benchmark::State& state, Stores stores) {
  const auto size = static_cast<size_t>(state.range(0));
  auto memory = arrays(2, size);
  for (auto _ : state) {
    copy(memory[0].data(), memory[1].data(), size, stores);
    benchmark::ClobberMemory();
  }
  say_bytes(state, 2 * size);
}

struct Case {
  const KernelTable* table;
  DType dtype;
  ReduceOp op;
  size_t sources;
  int64_t divisor;
  Stores stores;
};

void reduce_all_case(benchmark::State& state, const Case& what) {
  const auto size = static_cast<size_t>(state.range(0));
  auto memory = arrays(what.sources + 1, size);
  std::vector<const void*> sources;
  for (size_t i = 0; i < what.sources; ++i) sources.push_back(memory[i + 1].data());
  const ReduceAll job = {what.dtype, what.op, sources.data(), what.sources, {.divisor = what.divisor}, what.stores};
  for (auto _ : state) {
    reduce_all_with(*what.table, job, memory[0].data(), size / bytes_of(what.dtype));
    benchmark::ClobberMemory();
  }
  say_bytes(state, (what.sources + 1) * size);
}

void add(const std::string& name, const Case& what) {
  auto* const added =
      benchmark::RegisterBenchmark(name.c_str(), [what](benchmark::State& s) { reduce_all_case(s, what); });
  for (const int64_t size : kSizes) added->Arg(size);
}

void add_all() {
  for (const Stores stores : {Stores::cached, Stores::streaming}) {
    auto* const added = benchmark::RegisterBenchmark(stores == Stores::cached ? "copy" : "copy/streaming",
                                                     [stores](benchmark::State& s) { copy_bound(s, stores); });
    for (const int64_t size : kSizes) added->Arg(size);
  }
  const UsableTables usable = usable_tables();
  for (size_t i = 0; usable.tables[i] != nullptr; ++i) {
    const KernelTable* const table = usable.tables[i];
    const std::string set = std::string("/") + table->name;
    for (const DType dtype :
         {DType::float32, DType::float16, DType::bfloat16, DType::float64, DType::int32, DType::int64}) {
      const std::string name(name_of(dtype));
      add(name + "/sum/2" + set, {table, dtype, ReduceOp::sum, 2, 1, Stores::cached});
      add(name + "/average/2" + set, {table, dtype, ReduceOp::sum, 2, 2, Stores::cached});
    }
    add("float32/max/2" + set, {table, DType::float32, ReduceOp::max, 2, 1, Stores::cached});
    add("float32/average3/3" + set, {table, DType::float32, ReduceOp::sum, 3, 3, Stores::cached});
    add("float32/sum/4" + set, {table, DType::float32, ReduceOp::sum, 4, 1, Stores::cached});
    add("float32/sum/8" + set, {table, DType::float32, ReduceOp::sum, 8, 1, Stores::cached});
    add("float32/sum/2/streaming" + set, {table, DType::float32, ReduceOp::sum, 2, 1, Stores::streaming});
    add("uint8/sum/2" + set, {table, DType::uint8, ReduceOp::sum, 2, 1, Stores::cached});
    add("bool8/sum/2" + set, {table, DType::bool8, ReduceOp::sum, 2, 1, Stores::cached});
    add("int32/average3/3" + set, {table, DType::int32, ReduceOp::sum, 3, 3, Stores::cached});
  }
}

}  // namespace
}  // namespace halay::math

int main(int argc, char** argv) {
  halay::math::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
