#include "fusion/fusion.h"

#include <gtest/gtest.h>

#include <deque>
#include <initializer_list>

namespace halay::fusion {
namespace {

// A list under construction; tensor i has name i and ticket 100 + i.
class Packing : public ::testing::Test {
 protected:
  Packing() {
    list_.number = 7;
    list_.fusion_bytes = 100;
  }
  Decision& add(OpKind kind, Shape shape, DType dtype = DType::float32) {
    Decision& decision = decisions_.emplace_back();
    const auto index = static_cast<uint32_t>(list_.decided.size());
    decision.name = static_cast<NameId>(index);
    decision.kind = kind;
    decision.shape = shape;
    decision.dtype = dtype;
    list_.decided.push_back({&decision, static_cast<Ticket>(100 + index)});
    return decision;
  }
  Decision& reduce(int64_t elements, DType dtype = DType::float32) { return add(OpKind::allreduce, {elements}, dtype); }
  Decision& grouped(Decision& decision, uint32_t group) {
    decision.group = static_cast<NameId>(group);
    decision.group_size = 2;
    return decision;
  }
  // The names of each Batch.
  std::vector<std::vector<uint32_t>> packed(int set_size = 4, int me = 0) {
    batches_ = pack(list_, set_size, me);
    std::vector<std::vector<uint32_t>> out;
    for (const Batch& batch : batches_) {
      auto& names = out.emplace_back();
      for (const BatchTensor& tensor : batch.tensors) names.push_back(static_cast<uint32_t>(tensor.name));
    }
    return out;
  }
  using Names = std::vector<std::vector<uint32_t>>;

  std::deque<Decision> decisions_;
  DecisionList list_;
  std::vector<Batch> batches_;
};

TEST_F(Packing, PutsTensorsTogetherUpToTheLimit) {
  for (int i = 0; i < 5; ++i) reduce(10);  // 40 bytes each
  EXPECT_EQ(packed(), (Names{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(batches_[0].count_elems, 20u);
  EXPECT_EQ(batches_[0].list_number, 7u);
  EXPECT_EQ(batches_[0].tensors[1].ticket, static_cast<Ticket>(101));
  EXPECT_EQ(batches_[0].tensors[1].count_elems, 10u);
}

TEST_F(Packing, LeavesATensorThatIsLargerThanTheLimitAlone) {
  reduce(1), reduce(1000), reduce(1);
  EXPECT_EQ(packed(), (Names{{0, 2}, {1}}));
}

TEST_F(Packing, DoesNotFuseWithALimitOfZero) {
  list_.fusion_bytes = 0;
  reduce(0), reduce(0);
  EXPECT_EQ(packed(), (Names{{0}, {1}}));
}

TEST_F(Packing, LooksPastTensorsThatCannotShare) {
  reduce(2), reduce(2, DType::float16), reduce(2), reduce(2, DType::float16);
  reduce(2).reduce_op = ReduceOp::max;
  reduce(2).prescale = 0.5;
  reduce(2).device = DeviceType::cuda;
  add(OpKind::broadcast, {2}), add(OpKind::broadcast, {2});
  reduce(2);
  EXPECT_EQ(packed(), (Names{{0, 2, 9}, {1, 3}, {4}, {5}, {6}, {7}, {8}}));
}

TEST_F(Packing, AverageIsASumWithADivisorAndSharesWithItsLike) {
  reduce(1).reduce_op = ReduceOp::average;
  Decision& active = reduce(1);
  active.reduce_op = ReduceOp::average;
  active.divisor = Divisor::active;
  reduce(1);
  reduce(1).reduce_op = ReduceOp::average;
  list_.joined = {2};
  EXPECT_EQ(packed(), (Names{{0, 3}, {1}, {2}}));
  EXPECT_EQ(batches_[0].reduce_op, ReduceOp::sum);
  EXPECT_EQ(batches_[0].divisor, 4);
  EXPECT_EQ(batches_[1].divisor, 3);
  EXPECT_EQ(batches_[2].divisor, 1);
}

TEST_F(Packing, NeverSeparatesAGroupForItsSize) {
  reduce(10);
  grouped(reduce(20), 50);
  reduce(10);
  grouped(reduce(20), 50);
  reduce(2);
  EXPECT_EQ(packed(), (Names{{0, 2, 4}, {1, 3}}));
}

TEST_F(Packing, KeepsTheOrderOfTheListInsideABatch) {
  grouped(reduce(1), 50), reduce(1), grouped(reduce(1), 50);
  EXPECT_EQ(packed(), (Names{{0, 1, 2}}));
}

TEST_F(Packing, SeparatesAGroupByDtype) {
  grouped(reduce(1), 50), grouped(reduce(1, DType::float64), 50), reduce(1);
  EXPECT_EQ(packed(), (Names{{0, 2}, {1}}));
}

TEST_F(Packing, LeavesOutWhatFailed) {
  reduce(1);
  reduce(1).status = Status::mismatch("no");
  reduce(1);
  EXPECT_EQ(packed(), (Names{{0, 2}}));
}

TEST_F(Packing, SkipsMembersThatHaveJoined) {
  reduce(3);
  list_.joined = {0, 2};
  packed(4, 3);
  EXPECT_EQ(batches_[0].members, (std::vector<int>{1, 3}));
  EXPECT_EQ(batches_[0].me, 1);
  packed(4, 2);
  EXPECT_EQ(batches_[0].me, -1);
}

TEST_F(Packing, AJoinIsABatchOfAll) {
  add(OpKind::join, {}).last_joined = 2;
  EXPECT_EQ(packed(), (Names{{0}}));
  EXPECT_EQ(batches_[0].kind, OpKind::join);
  EXPECT_EQ(batches_[0].last_joined, 2);
  EXPECT_EQ(batches_[0].members.size(), 4u);
  EXPECT_EQ(batches_[0].count_elems, 0u);
}

TEST_F(Packing, CountsTheElementsOfEachMember) {
  add(OpKind::allgather, {2, 3}).rows = {2, 0};
  add(OpKind::alltoall, {5, 2}).rows = {1, 4, 3, 0};
  add(OpKind::reducescatter, {5, 2});
  packed(2, 0);
  EXPECT_EQ(batches_[0].counts, (std::vector<size_t>{6, 0}));
  EXPECT_EQ(batches_[1].counts, (std::vector<size_t>{2, 8, 6, 0}));
  EXPECT_EQ(batches_[2].counts, (std::vector<size_t>{6, 4}));
  EXPECT_EQ(batches_[1].count_elems, 10u);
}

TEST_F(Packing, LeavesRowsOutThatNoSplitOfAnAlltoallCovers) {
  add(OpKind::alltoall, {9, 2}).rows = {1, 4, 3, 0};
  packed(2, 0);
  EXPECT_EQ(batches_[0].count_elems, 10u);
  EXPECT_EQ(batches_[0].tensors[0].count_elems, 10u);
}

TEST_F(Packing, TheRootIsAnIndexAmongThoseThatTakePart) {
  add(OpKind::broadcast, {1}).root = 3;
  packed();
  EXPECT_EQ(batches_[0].root, 3);
}

TEST_F(Packing, IsTheSameOnEveryMember) {
  for (int i = 0; i < 40; ++i) reduce(1 + i % 7, i % 3 ? DType::float32 : DType::bfloat16).prescale = i % 5 ? 1.0 : 2.0;
  const Names first = packed(4, 0);
  for (int me = 1; me < 4; ++me) EXPECT_EQ(packed(4, me), first);
}

}  // namespace
}  // namespace halay::fusion
