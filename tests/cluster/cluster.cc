#include "cluster.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/text.h"
#include "math/kernels.h"

namespace halay::test {
namespace {

[[noreturn]] void die(const Status& status) {
  std::fprintf(stderr, "cluster: %s\n", status.text().c_str());
  std::abort();
}

template <typename T>
void put(std::vector<std::byte>& out, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
std::vector<double> get(const void* bytes, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(bytes) + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

}  // namespace

Cluster::Cluster(const ClusterOptions& options) {
  const bool inproc = options.transport == "inproc";
  const auto hub = inproc ? transport::make_inproc_hub() : nullptr;
  std::vector<std::string> settings = options.settings;
  settings.push_back("HALAY_JOB_KEY=0123456789abcdef");
  if (!inproc) settings.push_back("HALAY_TRANSPORT=" + options.transport);
  for (int rank = 0; rank < options.size; ++rank) {
    Result<Config> config = read_config_from({}, settings, nullptr);
    if (!config.ok()) die(config.status());
    engines_.push_back(
        std::make_unique<engine::Engine>(engine::EngineOptions{std::move(config).value(), hub, nullptr}));
  }
  std::vector<std::vector<std::byte>> addresses;
  for (auto& engine : engines_) {
    const auto address = engine->address();
    if (!address.ok()) die(address.status());
    addresses.emplace_back(address.value().begin(), address.value().end());
  }
  run([&](int rank, engine::Engine& engine) {
    const Status started = engine.start(rank, addresses);
    if (!started.ok()) die(started);
  });
}

Cluster::~Cluster() {
  run([](int, engine::Engine& engine) { (void)engine.shutdown(); });
}

void Cluster::run(const std::function<void(int, engine::Engine&)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) {
    if (engines_[static_cast<size_t>(rank)] == nullptr) continue;
    threads.emplace_back([&, rank] { body(rank, engine(rank)); });
  }
  for (std::thread& thread : threads) thread.join();
}

void Cluster::kill(int rank) {
  engine(rank).vanish();
  engines_[static_cast<size_t>(rank)].reset();
}

std::vector<std::byte> encode(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> out(values.size() * bytes_of(dtype) + 1);  // never null, also with no elements
  switch (dtype) {
    case DType::uint8:
      put<uint8_t>(out, values);
      break;
    case DType::int8:
      put<int8_t>(out, values);
      break;
    case DType::uint16:
      put<uint16_t>(out, values);
      break;
    case DType::int16:
      put<int16_t>(out, values);
      break;
    case DType::uint32:
      put<uint32_t>(out, values);
      break;
    case DType::int32:
      put<int32_t>(out, values);
      break;
    case DType::uint64:
      put<uint64_t>(out, values);
      break;
    case DType::int64:
      put<int64_t>(out, values);
      break;
    case DType::float32:
      put<float>(out, values);
      break;
    case DType::float64:
      put<double>(out, values);
      break;
    case DType::bool8:
      put<bool>(out, values);
      break;
    case DType::float16:
    case DType::bfloat16: {
      const std::vector<float> wide(values.begin(), values.end());
      math::finish(dtype, out.data(), wide.data(), wide.size(), {});
      break;
    }
  }
  return out;
}

std::vector<double> decode(DType dtype, const void* bytes, size_t count) {
  switch (dtype) {
    case DType::uint8:
      return get<uint8_t>(bytes, count);
    case DType::int8:
      return get<int8_t>(bytes, count);
    case DType::uint16:
      return get<uint16_t>(bytes, count);
    case DType::int16:
      return get<int16_t>(bytes, count);
    case DType::uint32:
      return get<uint32_t>(bytes, count);
    case DType::int32:
      return get<int32_t>(bytes, count);
    case DType::uint64:
      return get<uint64_t>(bytes, count);
    case DType::int64:
      return get<int64_t>(bytes, count);
    case DType::float32:
      return get<float>(bytes, count);
    case DType::float64:
      return get<double>(bytes, count);
    case DType::bool8:
      return get<uint8_t>(bytes, count);
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  std::vector<float> wide(count + 1);
  math::load(dtype, wide.data(), bytes, count);
  return {wide.begin(), wide.end() - 1};
}

engine::Submission submission(engine::Engine& engine, OpKind kind, std::string_view name, DType dtype, Shape shape,
                              const void* input, void* output) {
  engine::Submission out;
  out.request.name = engine.names().intern(name);
  out.request.kind = kind;
  out.request.dtype = dtype;
  out.request.shape = shape;
  out.input = input;
  out.output = output;
  out.output_bytes = output == nullptr ? 0 : static_cast<size_t>(shape.element_count()) * bytes_of(dtype);
  return out;
}

Outcome finish(engine::Engine& engine, engine::Handle handle, int64_t timeout_ms) {
  Outcome outcome;
  outcome.status = engine.wait(handle, timeout_ms);
  if (outcome.status.ok()) {
    outcome.status = engine.with_done(handle, [&](engine::Operation& operation) -> Status {
      const engine::OperationResult& result = operation.result;
      outcome.values = decode(result.dtype, result.data, result.size_bytes / bytes_of(result.dtype));
      outcome.shape.assign(result.shape.dims().begin(), result.shape.dims().end());
      outcome.received_splits = result.received_splits;
      return {};
    });
  }
  engine.release(handle);
  return outcome;
}

Outcome run_one(engine::Engine& engine, engine::Submission submission) {
  engine::Handle handle = 0;
  const Status submitted = engine.submit(std::span(&submission, 1), &handle);
  if (!submitted.ok()) return {submitted, {}, {}, {}};
  return finish(engine, handle);
}

uint64_t counter(engine::Engine& engine, std::string_view name) {
  const std::string stats = "\n" + engine.stats();
  const size_t at = stats.find(text("\n", name, " "));
  return at == std::string::npos ? 0 : std::strtoull(stats.c_str() + at + name.size() + 2, nullptr, 10);
}

}  // namespace halay::test
