#include "engine/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace halay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Case {
  Operation operation;
  Decision decision;

  Case(OpKind kind, Shape shape) {
    operation.submission.request.kind = decision.kind = kind;
    operation.submission.request.shape = shape;
    operation.submission.input = this;
  }
  Status run(int members, int me) { return bind(operation, decision, members, me); }
  std::vector<int64_t> shape() const {
    return {operation.result.shape.dims().begin(), operation.result.shape.dims().end()};
  }
};

TEST(ScatteredRows, GiveTheFirstRanksOneMore) {
  EXPECT_EQ(scattered_rows(7, 3, 0), 3);
  EXPECT_EQ(scattered_rows(7, 3, 1), 2);
  EXPECT_EQ(scattered_rows(1, 3, 2), 0);
}

TEST(Bind, MakesTheOutputOfEachKind) {
  Case same(OpKind::allreduce, {2, 3});
  ASSERT_TRUE(same.run(4, 1).ok());
  EXPECT_THAT(same.shape(), ElementsAre(2, 3));

  Case gathered(OpKind::allgather, {1, 3});
  gathered.decision.rows = {1, 0, 5};
  ASSERT_TRUE(gathered.run(3, 0).ok());
  EXPECT_THAT(gathered.shape(), ElementsAre(6, 3));
  EXPECT_EQ(gathered.operation.binding.input_elems, 3U);
  EXPECT_EQ(gathered.operation.binding.output_elems, 18U);

  Case scattered(OpKind::reducescatter, {7, 2});
  ASSERT_TRUE(scattered.run(3, 0).ok());
  EXPECT_THAT(scattered.shape(), ElementsAre(3, 2));

  Case exchanged(OpKind::alltoall, {9});
  exchanged.decision.rows = {1, 2, 3, 4};  // row s sends rows[s * 2 + d] to d
  ASSERT_TRUE(exchanged.run(2, 1).ok());
  EXPECT_THAT(exchanged.shape(), ElementsAre(6));
  EXPECT_THAT(exchanged.operation.result.received_splits, ElementsAre(2, 4));
  EXPECT_EQ(exchanged.operation.binding.input_elems, 7U);
}

TEST(Bind, UsesTheCallersOutputWhereItHasRoomElseMemoryOfItsOwn) {
  float output[4];
  Case given(OpKind::allreduce, {4});
  given.operation.submission.output = output;
  given.operation.submission.output_bytes = sizeof output;
  ASSERT_TRUE(given.run(2, 0).ok());
  EXPECT_EQ(given.operation.result.data, output);
  EXPECT_EQ(given.operation.owned.data(), nullptr);

  given.operation.submission.output_bytes = 3;
  ASSERT_TRUE(given.run(2, 0).ok());
  EXPECT_NE(given.operation.result.data, output);
  EXPECT_EQ(given.operation.result.data, given.operation.owned.data());
}

TEST(CheckSubmission, NamesWhatIsWrong) {
  const auto said = [](OpKind kind, Shape shape, std::vector<int64_t> splits, size_t output_bytes) {
    Submission submission;
    float memory[8];
    submission.request.kind = kind;
    submission.request.shape = shape;
    submission.request.splits = std::move(splits);
    submission.input = memory;
    if (output_bytes > 0) submission.output = memory + 4;
    submission.output_bytes = output_bytes;
    return check_submission(submission, 2).text();
  };
  EXPECT_EQ(said(OpKind::allreduce, {4}, {}, 16), "");
  EXPECT_THAT(said(OpKind::allreduce, {4}, {}, 15), HasSubstr("room for 15 bytes, the result has 16"));
  EXPECT_THAT(said(OpKind::allgather, {}, {}, 0), HasSubstr("at least one dimension"));
  EXPECT_THAT(said(OpKind::alltoall, {5}, {}, 0), HasSubstr("5 rows do not divide by the 2 members"));
  EXPECT_THAT(said(OpKind::alltoall, {5}, {1}, 0), HasSubstr("1 splits for 2 members"));
  EXPECT_THAT(said(OpKind::alltoall, {5}, {3, 3}, 0), HasSubstr("sum to 6 rows, the tensor has 5"));
  EXPECT_THAT(said(OpKind::alltoall, {5}, {-1, 3}, 0), HasSubstr("a split of -1"));
  EXPECT_EQ(said(OpKind::alltoall, {5}, {1, 3}, 0), "");
}

}  // namespace
}  // namespace halay::engine
