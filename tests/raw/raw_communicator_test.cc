// Every process computes what all others put in, so it can check the result by itself.
#include "raw/raw_communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "math/reference_for_test.h"
#include "raw/fork_world.h"

namespace halay::bench {
namespace {

using math::reference::with_type;

// The input of a rank: anybody can compute it.
std::vector<std::byte> values_of(int rank, uint64_t seed, size_t count, DType dtype) {
  std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(rank));
  std::vector<std::byte> bytes(count * bytes_of(dtype));
  for (size_t at = 0; at < bytes.size(); at += bytes_of(dtype)) {
    with_type(dtype, [&](auto zero) {
      using T = decltype(zero);
      T value;
      if constexpr (std::is_integral_v<T>)
        value = static_cast<T>(random());
      else if constexpr (std::is_floating_point_v<T>)
        value = static_cast<T>(static_cast<int64_t>(random() % 4001) - 2000) / 7;
      else if constexpr (std::is_same_v<T, math::reference::Bool>)
        value = {static_cast<uint8_t>(random() & 1)};
      else
        value = T::rounded(static_cast<float>(static_cast<int64_t>(random() % 4001) - 2000) / 7);
      std::memcpy(bytes.data() + at, &value, sizeof value);
    });
  }
  return bytes;
}

std::vector<std::byte> expected(int size, uint64_t seed, size_t count, DType dtype, ReduceOp op) {
  std::vector<std::vector<std::byte>> inputs;
  for (int rank = 0; rank < size; ++rank) inputs.push_back(values_of(rank, seed, count, dtype));
  return with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<std::byte> out(count * sizeof(T));
    std::vector<T> values(inputs.size());
    for (size_t at = 0; at < out.size(); at += sizeof(T)) {
      for (size_t i = 0; i < inputs.size(); ++i) std::memcpy(&values[i], inputs[i].data() + at, sizeof(T));
      const T result = math::reference::reduce_all<T>(op, values, {});
      std::memcpy(out.data() + at, &result, sizeof(T));
    }
    return out;
  });
}

// 0 if all is right; what a process returns.
int try_all(transport::Fabric& fabric) {
  auto made = RawCommunicator::create(fabric, 60'000);
  if (!made.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", fabric.rank(), made.status().text().c_str());
    return 10;
  }
  RawCommunicator& communicator = *made.value();
  uint64_t seed = 0;
  for (const size_t count : {1, 2, 14, 15, 29, 100, 1000, 4096, 30011, 70001}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float64, DType::int8}) {
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        if (count > 5000 && op == ReduceOp::max) continue;
        const auto input = values_of(communicator.rank(), ++seed, count, dtype);
        std::vector<std::byte> output(input.size());
        const Status status = communicator.allreduce(input.data(), output.data(), count, dtype, op);
        if (!status.ok()) {
          std::fprintf(stderr, "rank %d: %s\n", fabric.rank(), status.text().c_str());
          return 11;
        }
        if (output != expected(communicator.size(), seed, count, dtype, op)) {
          std::fprintf(stderr, "rank %d: wrong %s of %zu %s\n", fabric.rank(), name_of(op).data(), count,
                       name_of(dtype).data());
          return 12;
        }
      }
    }
  }
  return communicator.barrier().ok() ? 0 : 13;
}

TEST(RawCommunicator, GivesTheReferencesBitsBetweenProcesses) {
  for (const int32_t size : {1, 2, 3, 4}) EXPECT_EQ(run_forked(size, "shm", try_all), 0) << size << " processes";
}

TEST(RawCommunicator, EndsWithWordsWhenAPeerDies) {
  const int result = run_forked(2, "shm", [](transport::Fabric& fabric) {
    auto made = RawCommunicator::create(fabric, 60'000);
    if (!made.ok() || !made.value()->barrier().ok()) return 10;
    if (fabric.rank() == 1) return 0;  // it leaves without a word
    float value = 1;
    const Status status = made.value()->allreduce(&value, &value, 1, DType::float32, ReduceOp::sum);
    return status.code() == Code::peer_lost && status.culprit() == 1 ? 0 : 11;
  });
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace halay::bench
