#include "negotiate/validate.h"

#include <gtest/gtest.h>

#include <numeric>

namespace halay::negotiate {
namespace {

class Validate : public ::testing::Test {
 protected:
  Request request(OpKind kind, Shape shape, DType dtype = DType::float32) {
    Request made;
    made.name = names_.intern("grad/w1");
    made.kind = kind;
    made.dtype = dtype;
    made.shape = shape;
    return made;
  }
  // Members 0, 1, 2 … are world ranks 0, 3, 6 …
  Round round_of(const std::vector<Request>& requests, std::vector<int> skipped = {}) {
    asked_.clear();
    ranks_.clear();
    skipped_ = std::move(skipped);
    const size_t set_size = requests.size() + skipped_.size();
    for (size_t i = 0; i < set_size; ++i) ranks_.push_back(static_cast<int32_t>(3 * i));
    int member = 0;
    for (const Request& one : requests) {
      while (std::ranges::count(skipped_, member)) ++member;
      asked_.push_back({member++, &one});
    }
    return {asked_, skipped_, ranks_};
  }
  std::string verdict(const std::vector<Request>& requests, std::vector<int> skipped = {}) {
    const Status status = validate(round_of(requests, std::move(skipped)), names_);
    EXPECT_EQ(status.code(), status.ok() ? Code::ok : Code::mismatch);
    return status.text();
  }

  NameTable names_;
  std::vector<Asked> asked_;
  std::vector<int> skipped_;
  std::vector<int32_t> ranks_;
};

TEST_F(Validate, AcceptsEqualRequests) {
  const Request one = request(OpKind::allreduce, {4, 3});
  EXPECT_EQ(verdict({one}), "");
  EXPECT_EQ(verdict({one, one, one}), "");
}

TEST_F(Validate, NamesTheFirstTwoRanksThatDisagreeAndBothValues) {
  EXPECT_EQ(verdict({request(OpKind::allreduce, {12}), request(OpKind::allreduce, {10})}),
            "grad/w1: rank 3 sent float32 (10,), rank 0 float32 (12,)");
  EXPECT_EQ(verdict({request(OpKind::allreduce, {2}), request(OpKind::allreduce, {2}),
                     request(OpKind::allreduce, {2}, DType::int64)}),
            "grad/w1: rank 6 sent int64 (2,), rank 0 float32 (2,)");
  EXPECT_EQ(verdict({request(OpKind::allreduce, {2}), request(OpKind::broadcast, {2})}),
            "grad/w1: rank 3 sent broadcast float32 (2,), rank 0 allreduce float32 (2,)");
}

TEST_F(Validate, ComparesEveryPropertyThatHasAMeaning) {
  const Request plain = request(OpKind::allreduce, {2});
  Request other = plain;
  other.reduce_op = ReduceOp::max;
  EXPECT_EQ(verdict({plain, other}), "grad/w1: rank 3 sent op max, rank 0 op sum");
  other = plain;
  other.prescale = 0.5;
  EXPECT_EQ(verdict({plain, other}),
            "grad/w1: rank 3 sent prescale 0.5 and postscale 1, rank 0 prescale 1 and postscale 1");
  other = plain;
  other.device = DeviceType::cuda;
  EXPECT_EQ(verdict({plain, other}), "grad/w1: rank 3 sent a CUDA tensor, rank 0 a CPU tensor");
  other = plain;
  other.group = names_.intern("all");
  other.group_size = 3;
  EXPECT_EQ(verdict({plain, other}), "grad/w1: rank 3 sent it in group all of 3 tensors, rank 0 it in no group");
  Request average = plain, active = plain;
  average.reduce_op = active.reduce_op = ReduceOp::average;
  active.divisor = Divisor::active;
  EXPECT_EQ(verdict({average, active}),
            "grad/w1: rank 3 sent an average over active ranks, rank 0 an average over all ranks");
  Request from_first = request(OpKind::broadcast, {2}), from_second = from_first;
  from_second.root = 1;
  EXPECT_EQ(verdict({from_first, from_second}), "grad/w1: rank 3 sent root rank 3, rank 0 root rank 0");
}

TEST_F(Validate, LetsRowsDifferButNotTheOtherDimensions) {
  EXPECT_EQ(verdict({request(OpKind::allgather, {0, 5}), request(OpKind::allgather, {7, 5})}), "");
  EXPECT_EQ(verdict({request(OpKind::allgather, {7, 4}), request(OpKind::allgather, {7, 5})}),
            "grad/w1: rank 3 sent float32 (7, 5), rank 0 float32 (7, 4)");
  EXPECT_EQ(verdict({request(OpKind::allgather, {7, 1}), request(OpKind::allgather, {7})}),
            "grad/w1: rank 3 sent float32 (7,), rank 0 float32 (7, 1)");
  EXPECT_EQ(verdict({request(OpKind::reducescatter, {7}), request(OpKind::reducescatter, {8})}),
            "grad/w1: rank 3 sent float32 (8,), rank 0 float32 (7,)");
}

TEST_F(Validate, RefusesTensorsWithoutRowsWhereRowsAreDivided) {
  for (const OpKind kind : {OpKind::allgather, OpKind::alltoall, OpKind::reducescatter}) {
    EXPECT_EQ(verdict({request(kind, {}), request(kind, {})}),
              "grad/w1: " + std::string(name_of(kind)) + " needs at least one dimension, rank 0 sent float32 ()");
  }
  EXPECT_EQ(verdict({request(OpKind::allreduce, {}), request(OpKind::allreduce, {})}), "");
  EXPECT_EQ(verdict({request(OpKind::broadcast, {}), request(OpKind::broadcast, {})}), "");
}

TEST_F(Validate, ChecksSplits) {
  Request fits = request(OpKind::alltoall, {5, 2});
  fits.splits = {2, 3};
  EXPECT_EQ(verdict({fits, fits}), "");
  Request too_many = fits, too_few = fits;
  too_many.splits = {3, 3};
  too_few.splits = {5};
  EXPECT_EQ(verdict({fits, too_many}), "grad/w1: rank 3 sent splits [3, 3] for 5 rows and 2 ranks");
  EXPECT_EQ(verdict({fits, too_few}), "grad/w1: rank 3 sent splits [5] for 5 rows and 2 ranks");
}

TEST_F(Validate, RefusesWhatNeedsEveryRankWhileSomeHaveJoined) {
  const auto gather = request(OpKind::allgather, {2});
  EXPECT_EQ(verdict({gather, gather}, {1}), "grad/w1: allgather needs every rank, but rank 3 has joined");
  const auto scatter = request(OpKind::reducescatter, {2});
  EXPECT_EQ(verdict({scatter}, {1, 2}), "grad/w1: reducescatter needs every rank, but ranks 3, 6 have joined");
  EXPECT_EQ(verdict({request(OpKind::allreduce, {2})}, {1, 2}), "");
  EXPECT_EQ(verdict({request(OpKind::barrier, {})}, {1}), "");
}

TEST_F(Validate, RefusesResultsThatCannotBeCounted) {
  const auto huge = request(OpKind::allgather, {int64_t{1} << 60}, DType::float32);
  EXPECT_EQ(verdict({huge, huge}), "grad/w1: all ranks together sent more bytes than can be counted");
}

TEST_F(Validate, ADecisionHoldsTheRowsOfAllMembersAndGivesTheirRequestsBack) {
  std::vector<Request> requests = {request(OpKind::alltoall, {5, 2}), request(OpKind::alltoall, {1, 2})};
  requests[0].splits = {2, 3};
  requests[1].splits = {0, 1};
  Decision decision = decide(round_of(requests));
  EXPECT_EQ(decision.rows, (std::vector<int64_t>{2, 3, 0, 1}));
  EXPECT_EQ(decision.shape, (Shape{0, 2}));
  const Request second = request_behind(decision, 1, 2);
  EXPECT_EQ(second.splits, requests[1].splits);
  EXPECT_EQ(second.shape, requests[1].shape);
  decision.shape.set_dim(0, 5);
  EXPECT_TRUE(answers(decision, requests[0], 0, 2));
  EXPECT_FALSE(answers(decision, requests[1], 0, 2));
  requests[0].splits = {3, 2};
  EXPECT_FALSE(answers(decision, requests[0], 0, 2));
}

TEST_F(Validate, AnAnswerLooksOnlyAtWhatHasAMeaning) {
  const Decision barrier = decide(round_of({request(OpKind::barrier, {})}));
  EXPECT_TRUE(answers(barrier, request(OpKind::barrier, {3}, DType::int8), 0, 1));
  const auto sum = request(OpKind::allreduce, {3});
  const Decision reduced = decide(round_of({sum}));
  Request other = sum;
  other.divisor = Divisor::active;  // of an average only
  other.root = 4;
  EXPECT_TRUE(answers(reduced, other, 0, 1));
  other.postscale = 2;
  EXPECT_FALSE(answers(reduced, other, 0, 1));
  Request average = sum;
  average.reduce_op = ReduceOp::average;
  const Decision averaged = decide(round_of({average}));
  average.divisor = Divisor::active;
  EXPECT_FALSE(answers(averaged, average, 0, 1));
}

TEST_F(Validate, NormalizingFillsInEqualSplits) {
  Request equal = request(OpKind::alltoall, {6});
  normalize(equal, 3);
  EXPECT_EQ(equal.splits, (std::vector<int64_t>{2, 2, 2}));
  Request unequal = request(OpKind::alltoall, {7});
  normalize(unequal, 3);
  EXPECT_TRUE(unequal.splits.empty());
}

TEST_F(Validate, ListsOfRanksStayShort) {
  std::vector<int> members(12);
  std::iota(members.begin(), members.end(), 0);
  const std::vector<int32_t> ranks(members.begin(), members.end());
  EXPECT_EQ(ranks_text(members, ranks), "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more");
}

}  // namespace
}  // namespace halay::negotiate
