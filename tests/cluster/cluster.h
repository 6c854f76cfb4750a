// Cluster: N Engines in one process, a thread each, over inproc, shm or tcp. How most tests of the engine work.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"

namespace halay::test {

struct ClusterOptions {
  int size = 2;
  std::string transport = "inproc";
  std::vector<std::string> settings;  // "HALAY_NAME=value"
};

class Cluster {
 public:
  // Starts all engines; dies with the reason if one cannot.
  explicit Cluster(const ClusterOptions& options);
  ~Cluster();

  int size() const { return static_cast<int>(engines_.size()); }
  engine::Engine& engine(int rank) { return *engines_[static_cast<size_t>(rank)]; }
  // Runs body(rank, engine) on a thread for each rank and joins them.
  void run(const std::function<void(int rank, engine::Engine&)>& body);
  // As if the process of this rank had died: its engine is gone without a goodbye.
  void kill(int rank);

 private:
  std::vector<std::unique_ptr<engine::Engine>> engines_;
};

// One tensor of doubles in any dtype, as bytes, so that tests need no templates.
std::vector<std::byte> encode(DType dtype, const std::vector<double>& values);
std::vector<double> decode(DType dtype, const void* bytes, size_t count);

// A submission of a contiguous tensor; `output` null: the engine owns the result.
engine::Submission submission(engine::Engine& engine, OpKind kind, std::string_view name, DType dtype, Shape shape,
                              const void* input, void* output);

// Submits, waits, takes the result's values, releases.
struct Outcome {
  Status status;
  std::vector<double> values;
  std::vector<int64_t> shape;
  std::vector<int64_t> received_splits;
};
Outcome finish(engine::Engine& engine, engine::Handle handle, int64_t timeout_ms = 60'000);
Outcome run_one(engine::Engine& engine, engine::Submission submission);

// The value of a named counter in engine.stats().
uint64_t counter(engine::Engine& engine, std::string_view name);

}  // namespace halay::test
