// Every operation x dtype x way of submitting x transport x size, against values computed here. The size of the matrix
// is printed and asserted.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "cluster.h"
#include "engine/binding.h"

namespace halay::test {
namespace {

constexpr DType kDTypes[] = {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) DType::name,
#include "types/dtype.def"
#undef HALAY_DTYPE
};
constexpr ReduceOp kOps[] = {
#define HALAY_REDUCE_OP(name, number, on_bool) ReduceOp::name,
#include "types/reduce_op.def"
#undef HALAY_REDUCE_OP
};

enum class Mode { sync, async, grouped };
constexpr Mode kModes[] = {Mode::sync, Mode::async, Mode::grouped};
std::string_view name_of(Mode mode) { return mode == Mode::sync ? "sync" : mode == Mode::async ? "async" : "grouped"; }

// Small whole numbers, so that every dtype holds them and every sum and product up to 8 ranks exactly.
double value(DType dtype, int rank, size_t i) {
  const auto n = static_cast<double>((static_cast<size_t>(rank) + i) % 3);
  return dtype == DType::bool8 ? static_cast<double>((static_cast<size_t>(rank) * 3 + i) % 4 == 0) : n;
}

std::vector<double> values(DType dtype, int rank, size_t count) {
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = value(dtype, rank, i);
  return out;
}

double combine(DType dtype, ReduceOp op, double a, double b) {
  const bool logical = dtype == DType::bool8;
  switch (op) {
    case ReduceOp::average:
    case ReduceOp::sum:
      return logical ? std::max(a, b) : a + b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::product:
      return a * b;
  }
  return 0;
}

std::vector<double> reduced(DType dtype, ReduceOp op, int size, size_t count) {
  std::vector<double> out = values(dtype, 0, count);
  for (int rank = 1; rank < size; ++rank) {
    for (size_t i = 0; i < count; ++i) out[i] = combine(dtype, op, out[i], value(dtype, rank, i));
  }
  if (op == ReduceOp::average) {
    for (double& x : out) {
      x /= size;
      if (average_rule_of(dtype) == AverageRule::truncate) x = std::trunc(x);
      if (accumulator_of(dtype) == DType::float32) {
        const auto rounded = static_cast<float>(x);
        x = decode(dtype, encode(dtype, {rounded}).data(), 1)[0];
      }
    }
  }
  return out;
}

// One tensor of a case: what goes in, and what must come out.
struct Tensor {
  Shape shape;
  std::vector<std::byte> input;
  std::vector<double> expected;
  std::vector<int64_t> splits;
  std::vector<int64_t> received;
};

class Operations : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string transport() const { return std::get<0>(GetParam()); }
  int size() const { return std::get<1>(GetParam()); }

  // Three tensors for async and grouped, one of them empty; one for sync.
  void check(engine::Engine& engine, int rank, OpKind kind, DType dtype, ReduceOp op, Mode mode, int32_t root,
             const std::function<Tensor(int rank, size_t salt)>& make) {
    const size_t count = mode == Mode::sync ? 1 : 3;
    const std::string base = text(name_of(kind), ".", name_of(dtype), ".", name_of(op), ".", root, ".", name_of(mode));
    std::vector<Tensor> tensors;
    std::vector<engine::Submission> submissions;
    for (size_t i = 0; i < count; ++i) tensors.push_back(make(rank, i));
    for (size_t i = 0; i < count; ++i) {
      engine::Submission one =
          submission(engine, kind, text(base, ".", i), dtype, tensors[i].shape, tensors[i].input.data(), nullptr);
      one.request.reduce_op = op;
      one.request.root = root;
      one.request.splits = tensors[i].splits;
      submissions.push_back(one);
    }
    std::vector<engine::Handle> handles(count);
    if (mode == Mode::grouped) {
      const Status submitted = engine.submit(submissions, handles.data());
      ASSERT_TRUE(submitted.ok()) << submitted.text();
    } else {
      // Another order on every rank.
      for (size_t k = 0; k < count; ++k) {
        const size_t i = (k + static_cast<size_t>(rank)) % count;
        const Status submitted = engine.submit(std::span(&submissions[i], 1), &handles[i]);
        ASSERT_TRUE(submitted.ok()) << base << ": " << submitted.text();
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Outcome outcome = finish(engine, handles[i]);
      ASSERT_TRUE(outcome.status.ok()) << base << ": " << outcome.status.text();
      ASSERT_EQ(outcome.values, tensors[i].expected) << base << " tensor " << i << " on rank " << rank;
      ASSERT_EQ(outcome.received_splits, tensors[i].received) << base;
    }
    cases_.fetch_add(1);
  }

  std::atomic<int> cases_{0};
};

TEST_P(Operations, GiveTheRightValuesForEveryDtypeAndWay) {
  Cluster cluster({size(), transport(), {}});
  const int p = size();
  cluster.run([&](int rank, engine::Engine& engine) {
    for (const DType dtype : kDTypes) {
      for (const Mode mode : kModes) {
        for (const ReduceOp op : kOps) {
          if (op == ReduceOp::average && average_rule_of(dtype) == AverageRule::error) continue;
          check(engine, rank, OpKind::allreduce, dtype, op, mode, 0, [&](int r, size_t salt) {
            const size_t n = salt == 1 ? 0 : 37 + salt * 1000;
            return Tensor{
                Shape{static_cast<int64_t>(n)}, encode(dtype, values(dtype, r, n)), reduced(dtype, op, p, n), {}, {}};
          });
          check(engine, rank, OpKind::reducescatter, dtype, op, mode, 0, [&](int r, size_t salt) {
            const int64_t rows = static_cast<int64_t>(salt) * 5 + 1, width = 3;
            const auto n = static_cast<size_t>(rows * width);
            const std::vector<double> all = reduced(dtype, op, p, n);
            int64_t first = 0;
            for (int m = 0; m < r; ++m) first += engine::scattered_rows(rows, p, m);
            const int64_t mine = engine::scattered_rows(rows, p, r);
            return Tensor{Shape{rows, width},
                          encode(dtype, values(dtype, r, n)),
                          {all.begin() + first * width, all.begin() + (first + mine) * width},
                          {},
                          {}};
          });
        }
        check(engine, rank, OpKind::allgather, dtype, ReduceOp::sum, mode, 0, [&](int r, size_t salt) {
          Tensor tensor;
          for (int m = 0; m < p; ++m) {
            const std::vector<double> part = values(dtype, m, (static_cast<size_t>(m) + salt) % 4 * 2);
            tensor.expected.insert(tensor.expected.end(), part.begin(), part.end());
          }
          const size_t rows = (static_cast<size_t>(r) + salt) % 4;
          tensor.shape = Shape{static_cast<int64_t>(rows), 2};
          tensor.input = encode(dtype, values(dtype, r, rows * 2));
          return tensor;
        });
        check(engine, rank, OpKind::alltoall, dtype, ReduceOp::sum, mode, 0, [&](int r, size_t salt) {
          Tensor tensor;
          const auto rows_between = [&](int from, int to) {
            return (static_cast<int64_t>(from) * 2 + to + static_cast<int64_t>(salt)) % 3;
          };
          int64_t rows = 1;  // one more than is sent
          for (int m = 0; m < p; ++m) {
            tensor.splits.push_back(rows_between(r, m));
            rows += rows_between(r, m);
          }
          for (int from = 0; from < p; ++from) {
            int64_t skip = 0;
            for (int m = 0; m < r; ++m) skip += rows_between(from, m);
            for (int64_t i = 0; i < rows_between(from, r); ++i)
              tensor.expected.push_back(value(dtype, from, static_cast<size_t>(skip + i)));
            tensor.received.push_back(rows_between(from, r));
          }
          tensor.shape = Shape{rows};
          tensor.input = encode(dtype, values(dtype, r, static_cast<size_t>(rows)));
          return tensor;
        });
        for (int root = 0; root < p; ++root) {
          check(engine, rank, OpKind::broadcast, dtype, ReduceOp::sum, mode, root, [&](int r, size_t salt) {
            const size_t n = salt * 700 + 5;
            return Tensor{
                Shape{static_cast<int64_t>(n)}, encode(dtype, values(dtype, r, n)), values(dtype, root, n), {}, {}};
          });
        }
      }
    }
    // Operations without data.
    for (int i = 0; i < 5; ++i) {
      const Outcome barrier =
          run_one(engine, submission(engine, OpKind::barrier, "barrier", DType::uint8, {}, nullptr, nullptr));
      ASSERT_TRUE(barrier.status.ok()) << barrier.status.text();
    }
    const auto joined = engine.join();
    ASSERT_TRUE(joined.ok());
    ASSERT_TRUE(engine.wait(joined.value(), 60'000).ok());
    engine.release(joined.value());
    cases_.fetch_add(6);
  });
  const int with_average = static_cast<int>(std::size(kDTypes)) * 5 - 1;  // bool8 has no average
  const int expected = p * (3 * (2 * with_average + static_cast<int>(std::size(kDTypes)) * (2 + p)) + 6);
  std::printf("%s, %d ranks: %d cases\n", transport().c_str(), p, cases_.load());
  EXPECT_EQ(cases_.load(), expected);
}

INSTANTIATE_TEST_SUITE_P(Matrix, Operations,
                         ::testing::Combine(::testing::Values("inproc", "shm", "tcp"),
                                            ::testing::Values(1, 2, 3, 4, 5, 8)),
                         [](const auto& info) { return text(std::get<0>(info.param), "_", std::get<1>(info.param)); });

TEST(Bits, AreTheSameOnEveryTransportAndHoweverTensorsAreFused) {
  // Values for which the order of addition matters.
  for (const int p : {2, 3, 5, 8}) {
    std::vector<std::vector<double>> results;
    for (const std::string transport : {"inproc", "shm", "tcp"}) {
      for (const std::string fusion : {"HALAY_FUSION_THRESHOLD=0", "HALAY_FUSION_THRESHOLD=100000000"}) {
        Cluster cluster({p, transport, {fusion, "HALAY_REPRODUCIBLE=1"}});
        std::vector<std::vector<double>> by_rank(static_cast<size_t>(p));
        cluster.run([&](int rank, engine::Engine& engine) {
          std::vector<std::vector<float>> tensors;
          std::vector<engine::Submission> submissions;
          for (size_t t = 0; t < 4; ++t) {
            std::vector<float>& tensor = tensors.emplace_back(1001 + t * 40000);
            for (size_t i = 0; i < tensor.size(); ++i) {
              tensor[i] =
                  std::ldexp(1.0F + static_cast<float>((i * 7 + t + static_cast<size_t>(rank) * 13) % 97) / 97.0F,
                             static_cast<int>((i + static_cast<size_t>(rank) * 5) % 24));
            }
          }
          for (size_t t = 0; t < 4; ++t) {
            submissions.push_back(submission(engine, OpKind::allreduce, text("t", t), DType::float32,
                                             Shape{static_cast<int64_t>(tensors[t].size())}, tensors[t].data(),
                                             tensors[t].data()));
          }
          std::vector<engine::Handle> handles(4);
          ASSERT_TRUE(engine.submit(submissions, handles.data()).ok());
          for (const engine::Handle handle : handles) {
            const Outcome outcome = finish(engine, handle);
            ASSERT_TRUE(outcome.status.ok()) << outcome.status.text();
            auto& mine = by_rank[static_cast<size_t>(rank)];
            mine.insert(mine.end(), outcome.values.begin(), outcome.values.end());
          }
        });
        for (const auto& mine : by_rank) results.push_back(mine);
      }
    }
    for (const auto& result : results) ASSERT_EQ(result, results[0]) << p << " ranks";
  }
}

}  // namespace
}  // namespace halay::test
