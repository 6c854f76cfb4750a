// What recording an event costs the thread that drives the engine: without a file (the flight recorder alone), and with
// one. And how many events a second the writer can turn into text. Run: build/bench/bench/trace/trace_bench
#include <benchmark/benchmark.h>

#include <filesystem>

#include "trace/chrome_text.h"
#include "trace/timeline.h"

namespace halay::trace {
namespace {

void record(benchmark::State& state, Timeline& timeline, NameId name) {
  int64_t ns = 0;
  for (auto _ : state) timeline.activity_begin(name, Activity::SHM_ALLREDUCE, {++ns});
}

void without_a_file(benchmark::State& state) {
  NameTable names;
  Timeline timeline(names);
  record(state, timeline, names.intern("tensor"));
}
BENCHMARK(without_a_file);

void with_a_file(benchmark::State& state) {
  NameTable names;
  Timeline timeline(names);
  const std::string path = (std::filesystem::temp_directory_path() / "halay_trace_bench.json").string();
  const Status started = timeline.start(path, {.max_bytes = 64 << 20});
  if (!started.ok()) return state.SkipWithError(started.text().c_str());
  record(state, timeline, names.intern("tensor"));
  state.counters["dropped"] = static_cast<double>(timeline.dropped());
  const Status stopped = timeline.stop();
  if (!stopped.ok()) state.SkipWithError(stopped.text().c_str());
  std::filesystem::remove(path);
}
BENCHMARK(with_a_file);

// What the writer thread does for an event, but for the file.
void as_text(benchmark::State& state) {
  NameTable names;
  const NameId name = names.intern("tensor");
  ChromeText chrome(names, {.start_at = {0}});
  std::string out;
  int64_t ns = 0;
  for (auto _ : state) {
    if (out.size() > (1 << 20)) out.clear();
    chrome.append(out, {{ns += 500}, name, EventKind::activity_begin, 7}, {});
    chrome.append(out, {{ns += 500}, name, EventKind::activity_end}, {});
  }
  state.SetItemsProcessed(2 * state.iterations());
}
BENCHMARK(as_text);

}  // namespace
}  // namespace halay::trace

BENCHMARK_MAIN();
