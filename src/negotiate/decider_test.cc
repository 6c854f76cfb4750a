#include "negotiate/decider.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace halay::negotiate {
namespace {

constexpr int64_t kMs = 1'000'000;

class Deciding : public ::testing::Test {
 protected:
  Deciding() {
    options_.label = "process set 0";
    options_.ranks = {0, 1};
    options_.fusion_bytes = 1000;
    options_.coalesce_us = 1000;
    options_.cache_capacity = 8;
    options_.stall_warning_ms = 60'000;
    options_.op_deadline_ms = 100'000;
  }
  Decider& decider() {
    if (!decider_) decider_ = std::make_unique<Decider>(options_, names_);
    return *decider_;
  }
  Request request(std::string_view name, int64_t elements = 4) {
    Request made;
    made.name = names_.intern(name);
    made.dtype = DType::float32;
    made.shape = Shape{elements};
    return made;
  }
  Request grouped(std::string_view name, std::string_view group, uint32_t size) {
    Request made = request(name);
    made.group = names_.intern(group);
    made.group_size = size;
    return made;
  }
  // What one member tells at once.
  Announcement news() const {
    Announcement made;
    made.applied = applied_;
    return made;
  }
  Status hear(int member, const Announcement& news) { return decider().hear(member, news, now_); }
  void ask(int member, std::vector<Request> requests, bool urgent = false) {
    Announcement made = news();
    made.requests = std::move(requests);
    made.urgent = urgent;
    EXPECT_EQ(hear(member, made).text(), "");
  }
  Status repeat(int member, uint32_t cache_id, uint32_t generation) {
    Announcement made = news();
    made.repeats = {{cache_id, generation}};
    return hear(member, made);
  }
  void join(int member) {
    Announcement made = news();
    made.joined = true;
    EXPECT_EQ(hear(member, made).text(), "");
  }
  void pass(int64_t ns) { now_.ns += ns; }
  // The next list after a step; null if nothing is closed. The members have applied it.
  std::unique_ptr<ListMessage> step() {
    decider().step(now_);
    std::unique_ptr<ListMessage> list = decider().take_list();
    if (list) applied_ = list->number;
    return list;
  }
  // Both members ask, and the list is decided.
  std::unique_ptr<ListMessage> decide(const std::vector<Request>& requests) {
    for (int member = 0; member < static_cast<int>(options_.ranks.size()); ++member) ask(member, requests, true);
    return step();
  }

  NameTable names_;
  DeciderOptions options_;
  std::unique_ptr<Decider> decider_;
  Time now_{5 * kMs};
  uint64_t applied_ = 0;
};

using Items = std::vector<ListItem>;

TEST_F(Deciding, WaitsUntilEveryMemberHasAsked) {
  ask(0, {request("x")}, true);
  EXPECT_EQ(step(), nullptr);
  ask(1, {request("x")});
  const auto list = step();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->number, 1u);
  EXPECT_EQ(list->items, (Items{{ListItemKind::fresh, 0}}));
  EXPECT_EQ(list->fresh[0].decision.cache_id, 1u);
  EXPECT_EQ(list->fresh[0].decision.shape, (Shape{4}));
  EXPECT_EQ(list->fusion_bytes, 1000u);
}

TEST_F(Deciding, ARepetitionIsANumber) {
  decide({request("x")});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  EXPECT_EQ(step()->items, (Items{{ListItemKind::repeat, 1}}));
}

TEST_F(Deciding, OneChangedMemberAsksInFullAndTheOthersRepeat) {
  Request gather = request("g", 2);
  gather.kind = OpKind::allgather;
  decide({gather});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  gather.shape = Shape{5};
  ask(1, {gather});
  const auto list = step();
  ASSERT_EQ(list->items, (Items{{ListItemKind::fresh, 0}}));
  EXPECT_EQ(list->fresh[0].decision.cache_id, 1u);
  EXPECT_EQ(list->fresh[0].decision.rows, (std::vector<int64_t>{2, 5}));
}

TEST_F(Deciding, AFailureLeavesTheCacheAsItIs) {
  decide({request("x")});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  ask(1, {request("x", 9)});
  const auto failed = step();
  ASSERT_EQ(failed->items, (Items{{ListItemKind::failed, 0}}));
  EXPECT_EQ(failed->fresh[0].decision.status.text(), "x: rank 1 sent float32 (9,), rank 0 float32 (4,)");
  EXPECT_EQ(failed->fresh[0].asked, (std::vector<int>{0, 1}));
  EXPECT_TRUE(repeat(0, 1, 1).ok());
  EXPECT_TRUE(repeat(1, 1, 1).ok());
  EXPECT_EQ(step()->items, (Items{{ListItemKind::repeat, 1}}));
}

TEST_F(Deciding, RefusesWhatNoMemberCanSay) {
  decide({request("x")});
  EXPECT_EQ(repeat(0, 9, 0).text(), "rank 0 repeats cache number 9, which is unknown");
  EXPECT_EQ(repeat(0, 1, 1).text(), "rank 0 repeats cache number 1 in generation 1, expected 0");
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  EXPECT_EQ(repeat(0, 1, 1).text(), "rank 0 asks twice for x in process set 0");
  Announcement future = news();
  future.applied = 99;
  EXPECT_EQ(hear(1, future).code(), Code::internal);
  join(1);
  Announcement twice = news();
  twice.joined = true;
  EXPECT_EQ(hear(1, twice).text(), "rank 1 joins twice in process set 0");
  EXPECT_EQ(repeat(1, 1, 0).text(), "rank 1 asks for x in process set 0 after it has joined");
}

// Coalescing.

TEST_F(Deciding, WaitsForCompanyAtMostTheWindow) {
  ask(0, {request("x")}), ask(1, {request("x")});
  EXPECT_EQ(step(), nullptr);
  EXPECT_EQ(decider().next_deadline(), now_.plus_us(1000));
  pass(kMs - 1);
  EXPECT_EQ(step(), nullptr);
  pass(1);
  EXPECT_TRUE(step());
}

TEST_F(Deciding, AWaitingThreadEndsTheWaitWhenNoCompanyIsKnown) {
  ask(0, {request("x")}), ask(1, {request("x")});
  EXPECT_EQ(step(), nullptr);
  ask(0, {}, true);
  EXPECT_TRUE(step());
}

TEST_F(Deciding, ALoneRepeatedOperationNeverWaits) {
  decide({request("x")});
  for (uint32_t round = 0; round < 5; ++round) {
    EXPECT_TRUE(repeat(0, 1, round).ok());
    EXPECT_TRUE(repeat(1, 1, round).ok());
    EXPECT_TRUE(step()) << round;
  }
}

TEST_F(Deciding, ClosesAtOnceWhenTheExpectedBurstIsThere) {
  decide({request("x"), request("y"), request("z")});
  for (uint32_t id : {1u, 2u, 3u}) EXPECT_TRUE(repeat(0, id, 0).ok());
  EXPECT_TRUE(repeat(1, 2, 0).ok());
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  EXPECT_EQ(step(), nullptr);
  EXPECT_TRUE(repeat(1, 3, 0).ok());
  EXPECT_EQ(step()->items, (Items{{ListItemKind::repeat, 2}, {ListItemKind::repeat, 1}, {ListItemKind::repeat, 3}}));
}

TEST_F(Deciding, ClosesWhenThereAreEnoughBytes) {
  ask(0, {request("x", 200), request("y", 50)}), ask(1, {request("x", 200)});
  EXPECT_EQ(step(), nullptr);  // 800 of 1000 bytes
  ask(1, {request("y", 50)});
  EXPECT_EQ(step()->items.size(), 2u);
}

TEST_F(Deciding, BurstsGrowWhereTheNextDoesNotDependOnTheLast) {
  // y was asked for before x was applied, so they could have gone together.
  ask(0, {request("x"), request("y")}), ask(1, {request("x")});
  pass(kMs);
  EXPECT_EQ(step()->items.size(), 1u);
  applied_ = 0;
  ask(1, {request("y")});
  decider().step(now_.plus_us(400));
  pass(kMs);
  EXPECT_EQ(step()->items.size(), 1u);  // the window was over again, too late to learn from
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  EXPECT_TRUE(repeat(0, 2, 0).ok());
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  const auto first = step();
  ASSERT_TRUE(first);
  applied_ = first->number - 1;
  Announcement late = news();
  applied_ = first->number;
  late.applied = first->number;
  late.repeats = {{2, 0}};
  EXPECT_TRUE(hear(1, late).ok());
  const auto second = step();  // rank 0 had asked for y before it could apply the first list
  ASSERT_TRUE(second);
  EXPECT_TRUE(repeat(0, 1, 1).ok());
  EXPECT_TRUE(repeat(1, 1, 1).ok());
  EXPECT_EQ(step(), nullptr);
  EXPECT_TRUE(repeat(0, 2, 1).ok());
  EXPECT_TRUE(repeat(1, 2, 1).ok());
  EXPECT_EQ(step()->items.size(), 2u);
}

// Groups.

TEST_F(Deciding, AGroupIsDecidedAllOrNothing) {
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}, true), ask(1, {grouped("a", "g", 2)}, true);
  pass(5 * kMs);
  EXPECT_EQ(step(), nullptr);
  ask(1, {grouped("b", "g", 2)});
  EXPECT_EQ(step()->items.size(), 2u);
}

TEST_F(Deciding, OneWrongTensorFailsItsWholeGroup) {
  Request wrong = grouped("b", "g", 2);
  wrong.dtype = DType::int8;
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}), ask(1, {grouped("a", "g", 2), wrong});
  const auto list = step();
  ASSERT_EQ(list->items.size(), 2u);
  for (const FreshDecision& fresh : list->fresh) {
    EXPECT_EQ(fresh.decision.status.text(), "b: rank 1 sent int8 (4,), rank 0 float32 (4,)");
    EXPECT_EQ(fresh.asked, (std::vector<int>{0, 1}));
  }
}

TEST_F(Deciding, AGroupOfAnotherSizeFailsForAllWhoAskedForAPart) {
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}), ask(1, {grouped("a", "g", 1)});
  const auto list = step();
  ASSERT_EQ(list->fresh.size(), 2u);
  EXPECT_EQ(list->fresh[0].decision.status.text(),
            "a: rank 1 sent it in group g of 1 tensor, rank 0 it in group g of 2 tensors");
  EXPECT_EQ(list->fresh[0].asked, (std::vector<int>{0, 1}));
  EXPECT_EQ(list->fresh[1].asked, (std::vector<int>{0}));
}

TEST_F(Deciding, WhoAsksBetweenAFailureAndItsListIsAnsweredToo) {
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}), ask(1, {grouped("a", "g", 1)});
  ask(1, {grouped("b", "g", 1)});
  const auto list = step();
  ASSERT_EQ(list->fresh.size(), 2u);
  EXPECT_EQ(list->fresh[1].asked, (std::vector<int>{0, 1}));
}

TEST_F(Deciding, AGroupThatRanksSeeDifferentlyFailsInEveryOrder) {
  ask(1, {grouped("a", "g", 1)});
  join(1);
  ask(0, {grouped("b", "g", 2), grouped("a", "g", 2)});  // b would be complete without rank 1
  const auto list = step();
  ASSERT_EQ(list->items.size(), 2u);
  EXPECT_EQ(list->items[0].kind, ListItemKind::failed);
  EXPECT_EQ(list->items[1].kind, ListItemKind::failed);
}

TEST_F(Deciding, AfterAFailedJoinAGroupWaitsForThatRankAgain) {
  options_.ranks = {0, 1, 2};
  join(2);
  pass(50'000 * kMs);
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}), ask(1, {grouped("a", "g", 2)});
  pass(50'000 * kMs);
  EXPECT_EQ(step()->fresh[0].decision.kind, OpKind::join);
  ask(2, {grouped("a", "g", 2)}, true);
  EXPECT_EQ(step(), nullptr);
  ask(1, {grouped("b", "g", 2)}), ask(2, {grouped("b", "g", 2)}, true);
  const auto list = step();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items.size(), 2u);
  EXPECT_TRUE(list->joined.empty());
}

// Leaving.

TEST_F(Deciding, WhatNeedsOneThatLeftFailsAndWhatItAskedForGoesOn) {
  ask(1, {request("x")});
  ask(0, {request("y")});
  decider().leave(1, Status::peer_lost(1, "rank 1 finished"));
  auto list = step();
  ASSERT_EQ(list->items, (Items{{ListItemKind::failed, 0}}));
  EXPECT_EQ(list->fresh[0].decision.status.text(), "y needs it: rank 1 finished");
  EXPECT_EQ(list->fresh[0].decision.status.culprit(), 1);
  EXPECT_EQ(list->fresh[0].asked, (std::vector<int>{0}));
  ask(0, {request("x")}, true);
  EXPECT_EQ(step()->items, (Items{{ListItemKind::fresh, 0}}));
  ask(0, {request("z")});
  EXPECT_EQ(step()->items, (Items{{ListItemKind::failed, 0}}));
}

TEST_F(Deciding, WhoJoinedAndLeftIsSkippedUntilTheJoinEnds) {
  join(1);
  decider().leave(1, Status::peer_lost(1, "rank 1 finished"));
  ask(0, {request("x")}, true);
  EXPECT_EQ(step()->joined, (std::vector<int>{1}));
  join(0);
  EXPECT_EQ(step()->items, (Items{{ListItemKind::join, 0}}));
  ask(0, {request("x")}, true);
  EXPECT_EQ(step()->items, (Items{{ListItemKind::failed, 0}}));
}

TEST_F(Deciding, AJoinFailsWhenOneLeavesThatDidNotJoin) {
  join(0);
  EXPECT_EQ(step(), nullptr);
  decider().leave(1, Status::peer_lost(1, "rank 1 finished"));
  const auto list = step();
  ASSERT_EQ(list->fresh.size(), 1u);
  EXPECT_EQ(list->fresh[0].decision.kind, OpKind::join);
  EXPECT_EQ(list->fresh[0].decision.status.text(), "join needs it: rank 1 finished");
  EXPECT_EQ(list->fresh[0].asked, (std::vector<int>{0}));
}

TEST_F(Deciding, WhoLeftHoldsUpNoEvictedNumbers) {
  options_.cache_capacity = 1;
  decide({request("x")});
  decide({request("y")});
  ask(0, {});
  EXPECT_EQ(decider().retired_count(), 1u);
  decider().leave(1, Status::peer_lost(1, "rank 1 finished"));
  ask(0, {});
  EXPECT_EQ(decider().retired_count(), 0u);
}

// The cache.

TEST_F(Deciding, EvictsTheLeastRecentlyUsedAndNeverUsesANumberAgain) {
  options_.cache_capacity = 2;
  decide({request("x")});
  decide({request("y")});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  step();
  const auto list = decide({request("z")});
  EXPECT_EQ(list->items, (Items{{ListItemKind::evict, 2}, {ListItemKind::fresh, 0}}));
  EXPECT_EQ(list->fresh[0].decision.cache_id, 3u);
}

TEST_F(Deciding, UnderstandsARepeatThatWasSentBeforeTheEvictionWasKnown) {
  options_.cache_capacity = 1;
  decide({request("x")});
  decide({request("y")});  // evicts 1 in list 2
  EXPECT_EQ(decider().retired_count(), 1u);
  applied_ = 1;
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  applied_ = 2;
  ask(0, {request("x")}, true);
  const auto list = step();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->fresh[0].decision.shape, (Shape{4}));
  EXPECT_EQ(list->fresh[0].decision.cache_id, 3u);
}

TEST_F(Deciding, ForgetsWhatItEvictedWhenAllHaveAppliedIt) {
  options_.cache_capacity = 1;
  decide({request("x")});
  decide({request("y")});
  ask(0, {}), ask(1, {});  // both have applied list 2
  EXPECT_EQ(decider().retired_count(), 0u);
  EXPECT_EQ(repeat(1, 1, 0).text(), "rank 1 repeats cache number 1, which is unknown");
}

TEST_F(Deciding, NeverEvictsWhatIsBeingAskedFor) {
  options_.cache_capacity = 1;
  decide({request("x")});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  const auto list = decide({request("y")});
  EXPECT_EQ(list->items, (Items{{ListItemKind::fresh, 0}}));
  EXPECT_EQ(list->fresh[0].decision.cache_id, 0u);
  EXPECT_TRUE(repeat(1, 1, 0).ok());
  EXPECT_EQ(step()->items, (Items{{ListItemKind::repeat, 1}}));
}

TEST_F(Deciding, DoesNotWaitForACompanionThatWasEvicted) {
  options_.cache_capacity = 3;
  decide({request("x"), request("y"), request("z")});
  decide({request("new")});  // evicts x
  for (const int member : {0, 1}) {
    EXPECT_TRUE(repeat(member, 2, 0).ok());
    EXPECT_TRUE(repeat(member, 3, 0).ok());
  }
  EXPECT_TRUE(step());
}

TEST_F(Deciding, WithoutACacheEverythingTravelsInFull) {
  options_.cache_capacity = 0;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(decide({request("x")})->fresh[0].decision.cache_id, 0u);
  }
}

// Join.

TEST_F(Deciding, SkipsWhoHasJoined) {
  ask(0, {request("x")}, true);
  join(1);
  const auto list = step();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->joined, (std::vector<int>{1}));
}

TEST_F(Deciding, WhoAskedAndThenJoinedTakesPart) {
  ask(1, {request("x")});
  join(1);
  ask(0, {request("x"), request("y")}, true);
  decider().step(now_);
  const auto first = decider().take_list(), second = decider().take_list();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->joined.empty());
  EXPECT_EQ(first->fresh[0].decision.name, request("x").name);
  EXPECT_EQ(second->joined, (std::vector<int>{1}));
}

TEST_F(Deciding, AJoinEndsWhenAllHaveJoinedAndNamesTheLast) {
  join(1);
  EXPECT_EQ(step(), nullptr);
  join(0);
  EXPECT_EQ(step()->items, (Items{{ListItemKind::join, 0}}));
  const auto list = decide({request("x")});
  EXPECT_TRUE(list->joined.empty());
}

TEST_F(Deciding, ACachedAllgatherIsRefusedWhileOneHasJoined) {
  Request gather = request("g", 2);
  gather.kind = OpKind::allgather;
  decide({gather});
  EXPECT_TRUE(repeat(0, 1, 0).ok());
  join(1);
  EXPECT_EQ(step()->fresh[0].decision.status.text(), "g: allgather needs every rank, but rank 1 has joined");
}

TEST_F(Deciding, AJoinFailsWhenNothingHappensForTheDeadline) {
  join(1);
  pass(60'000 * kMs);
  ask(0, {request("x")}, true);
  EXPECT_TRUE(step());
  pass(99'999 * kMs);
  EXPECT_EQ(step(), nullptr);
  pass(kMs);
  const auto list = step();
  ASSERT_TRUE(list);
  EXPECT_EQ(list->fresh[0].asked, (std::vector<int>{1}));
  EXPECT_EQ(list->fresh[0].decision.status.text(),
            "join is stalled in process set 0: nothing was decided for 100 s, and rank 0 did not join; "
            "rank 0 last asked for x, 100 s ago");
  EXPECT_TRUE(decide({request("x")})->joined.empty());
}

// Stalls.

TEST_F(Deciding, WarnsOfWhatSomeButNotAllAskedForOncePerInterval) {
  options_.op_deadline_ms = 1'000'000;
  ask(0, {request("x0")});
  pass(1000 * kMs);
  ask(1, {request("x1")});
  EXPECT_EQ(decider().next_deadline(), Time{5 * kMs}.plus_ms(60'000));
  pass(59'000 * kMs);
  EXPECT_EQ(step(), nullptr);
  ASSERT_EQ(decider().warnings().size(), 1u);
  EXPECT_EQ(decider().warnings()[0],
            "process set 0: 1 operation waits for ranks that have not asked: x0 since 60 s, missing rank 1; "
            "rank 1 waits for x1, missing rank 0");
  pass(30'000 * kMs);
  step();
  EXPECT_EQ(decider().warnings().size(), 1u);
  pass(30'000 * kMs);
  step();
  EXPECT_EQ(decider().warnings().size(), 2u);
}

TEST_F(Deciding, DoesNotWarnWhereTheStallCheckIsOff) {
  options_.stall_check = false;
  ask(0, {request("x0")});
  pass(90'000 * kMs);
  step();
  EXPECT_TRUE(decider().warnings().empty());
}

TEST_F(Deciding, FailsAtTheDeadlineForThoseWhoAsked) {
  ask(0, {request("x0")}), ask(1, {request("x1")});
  EXPECT_EQ(decider().next_deadline(), Time{5 * kMs}.plus_ms(60'000));
  pass(100'000 * kMs);
  const auto list = step();
  ASSERT_EQ(list->fresh.size(), 2u);
  EXPECT_EQ(list->fresh[0].asked, (std::vector<int>{0}));
  EXPECT_EQ(list->fresh[0].decision.status.code(), Code::stalled);
  EXPECT_EQ(list->fresh[0].decision.status.text(),
            "x0 is stalled in process set 0 after 100 s, missing rank 1; rank 0 asked for it; "
            "rank 1 waits for x1, missing rank 0");
  EXPECT_EQ(list->fresh[1].asked, (std::vector<int>{1}));
  // Usable, and who comes late has a deadline of its own.
  ask(1, {request("x0")});
  EXPECT_TRUE(decide({request("y")}));
  pass(100'000 * kMs);
  EXPECT_EQ(step()->fresh[0].asked, (std::vector<int>{1}));
}

TEST_F(Deciding, SaysWhatAGroupWaitsFor) {
  ask(0, {grouped("a", "g", 2), grouped("b", "g", 2)}), ask(1, {grouped("a", "g", 2), request("other")});
  pass(100'000 * kMs);
  const auto list = step();
  ASSERT_EQ(list->fresh.size(), 3u);
  EXPECT_EQ(list->fresh[0].decision.status.text(),
            "a is stalled in process set 0 after 100 s, whose group g has 1 of 2 tensors (b, missing rank 1); "
            "ranks 0, 1 asked for it");
}

TEST_F(Deciding, KnowsWhatAMemberDidLast) {
  EXPECT_EQ(decider().last_heard(1, now_), "has asked for nothing yet");
  ask(1, {request("x")});
  EXPECT_EQ(decider().last_heard(1, now_), "waits for x, missing rank 0");
  ask(0, {request("x")}, true);
  step();
  pass(1500 * kMs);
  EXPECT_EQ(decider().last_heard(1, now_), "last asked for x, 1.5 s ago");
  join(1);
  EXPECT_EQ(decider().last_heard(1, now_), "has joined");
}

TEST_F(Deciding, ZeroMeansNoDeadline) {
  options_.op_deadline_ms = 0;
  options_.stall_warning_ms = 0;
  ask(0, {request("x")});
  EXPECT_EQ(decider().next_deadline(), Time::never());
  pass(int64_t{1} << 60);
  EXPECT_EQ(step(), nullptr);
}

}  // namespace
}  // namespace halay::negotiate
