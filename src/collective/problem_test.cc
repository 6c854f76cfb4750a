#include <gtest/gtest.h>

#include "collective/plan.h"

namespace halay::collective {
namespace {

TEST(Problem, IsWhatABatchAsks) {
  Batch batch;
  batch.kind = OpKind::allgather;
  batch.dtype = DType::int64;
  batch.reduce_op = ReduceOp::max;
  batch.root = 1;
  batch.members = {0, 2, 5};
  batch.me = 2;
  batch.count_elems = 9;
  batch.counts = {3, 0, 9};
  const Problem problem = Problem::of(batch);
  EXPECT_EQ(problem.kind, OpKind::allgather);
  EXPECT_EQ(problem.dtype, DType::int64);
  EXPECT_EQ(problem.reduce_op, ReduceOp::max);
  EXPECT_EQ(problem.member_count, 3);
  EXPECT_EQ(problem.me, 2);
  EXPECT_EQ(problem.root, 1);
  EXPECT_EQ(problem.count_elems, 9u);
  EXPECT_EQ(problem.counts, (std::vector<size_t>{3, 0, 9}));
}

TEST(Problem, AJoinEndsLikeABarrier) {
  Batch batch;
  batch.kind = OpKind::join;
  batch.members = {0, 1};
  EXPECT_EQ(Problem::of(batch).kind, OpKind::barrier);
}

}  // namespace
}  // namespace halay::collective
