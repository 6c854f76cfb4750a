#include "control/set_control.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "fusion/fusion.h"
#include "wire/control_codec.h"

namespace halay::control {
namespace {

constexpr int64_t kMs = 1'000'000;

// A set whose messages arrive at once; each member numbers names in its own table.
class Controls : public ::testing::Test {
 protected:
  struct Ended {
    Status status;
    Decision decision;
    uint64_t list = 0;
  };

  void start(int set_size) {
    SetSpec spec;
    spec.label = "process set 0";
    for (int member = 0; member < set_size; ++member) spec.ranks.push_back(member);
    for (int member = 0; member < set_size; ++member) {
      spec.me = member;
      names_.emplace_back();
      for (int i = 0; i < member; ++i) names_.back().intern("only here " + std::to_string(i));
      controls_.push_back(std::make_unique<SetControl>(spec, limits_, names_.back()));
      ended_.emplace_back();
    }
  }
  Request request(int member, std::string_view name, const Shape& shape = {4}, OpKind kind = OpKind::allreduce) {
    Request made;
    made.name = names_[static_cast<size_t>(member)].intern(name);
    made.kind = kind;
    made.dtype = DType::float32;
    made.shape = shape;
    return made;
  }
  Ticket submit(int member, const Request& request, bool urgent = false) {
    const auto ticket = static_cast<Ticket>(++last_ticket_);
    control(member).submit(ticket, request, urgent, now_);
    return ticket;
  }
  SetControl& control(int member) { return *controls_[static_cast<size_t>(member)]; }
  // Steps and carries messages until nothing moves any more.
  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t member = 0; member < controls_.size(); ++member)
        moved = settle_one(static_cast<int>(member)) || moved;
    }
  }
  bool settle_one(int member) {
    SetControl& from = control(member);
    from.step(now_);
    bool moved = false;
    for (const Outgoing& message : from.outgoing()) {
      EXPECT_EQ(control(message.member).receive(member, message.bytes, now_).text(), "");
      moved = true;
    }
    from.outgoing().clear();
    while (const DecisionList* list = from.next_list()) {
      for (const Decided& decided : list->decided) {
        if (decided.ticket == Ticket::none) continue;
        ended_[static_cast<size_t>(member)][decided.ticket] = {decided.decision->status, *decided.decision,
                                                               list->number};
      }
      moved = true;
    }
    return moved;
  }
  const Ended* ended(int member, Ticket ticket) {
    const auto& all = ended_[static_cast<size_t>(member)];
    const auto found = all.find(ticket);
    return found == all.end() ? nullptr : &found->second;
  }
  std::string error(int member, Ticket ticket) {
    const Ended* end = ended(member, ticket);
    return end ? end->status.text() : "not ended";
  }

  Limits limits_;
  Time now_{kMs};
  std::deque<NameTable> names_;
  std::vector<std::unique_ptr<SetControl>> controls_;
  std::vector<std::map<Ticket, Ended>> ended_;
  uint64_t last_ticket_ = 0;
};

TEST_F(Controls, AloneDecidesForItself) {
  start(1);
  const Ticket ticket = submit(0, request(0, "x"), true);
  settle();
  EXPECT_EQ(error(0, ticket), "");
  EXPECT_EQ(control(0).counters().messages_sent, 0u);
  EXPECT_EQ(control(0).next_deadline(), Time::never());
}

// R7 of spec/users.md: the order of submission does not matter.
TEST_F(Controls, MatchesByNameInAnyOrder) {
  start(2);
  const Ticket a0 = submit(0, request(0, "a")), b0 = submit(0, request(0, "b"), true);
  const Ticket b1 = submit(1, request(1, "b")), a1 = submit(1, request(1, "a"), true);
  settle();
  for (const Ticket ticket : {a0, b0}) EXPECT_EQ(error(0, ticket), "");
  for (const Ticket ticket : {a1, b1}) EXPECT_EQ(error(1, ticket), "");
}

TEST_F(Controls, TellsInOneMessageWhatWasSubmittedTogether) {
  start(2);
  for (int i = 0; i < 20; ++i) submit(1, request(1, "x" + std::to_string(i)));
  settle();
  EXPECT_EQ(control(1).counters().messages_sent, 1u);
  EXPECT_EQ(control(1).counters().requests_sent, 20u);
}

TEST_F(Controls, ARepeatedStepSendsNoNamesAndIsDecidedAsBefore) {
  start(3);
  std::vector<uint64_t> lists, bytes;
  for (int step = 0; step < 5; ++step) {
    const uint64_t bytes_before = control(1).counters().message_bytes_sent, lists_before = control(1).counters().lists;
    for (int member = 0; member < 3; ++member) {
      for (int i = 0; i < 100; ++i) submit(member, request(member, "layer" + std::to_string(i) + ".weight"), i == 99);
    }
    settle();
    lists.push_back(control(1).counters().lists - lists_before);
    bytes.push_back(control(1).counters().message_bytes_sent - bytes_before);
  }
  EXPECT_EQ(control(1).counters().requests_sent, 100u);
  EXPECT_EQ(control(1).counters().repeats_sent, 400u);
  EXPECT_EQ(control(0).counters().cache_hits, 400u);
  EXPECT_EQ(control(0).counters().cache_misses, 100u);
  EXPECT_EQ(lists, (std::vector<uint64_t>{1, 1, 1, 1, 1}));
  EXPECT_GT(bytes[0], 2000u);
  for (size_t step = 1; step < bytes.size(); ++step) EXPECT_LT(bytes[step], 210u);
}

TEST_F(Controls, ARepeatedSynchronousOperationTakesNoTime) {
  limits_.coalesce_us = 1'000'000;
  start(2);
  for (int step = 0; step < 4; ++step) {
    const Ticket first = submit(0, request(0, "x"), true), second = submit(1, request(1, "x"), true);
    settle();  // the clock stands still
    EXPECT_EQ(error(0, first), "");
    EXPECT_EQ(error(1, second), "");
  }
}

// Without a waiting thread the first time is coalesced, and urge() ends that.
TEST_F(Controls, UrgeEndsTheWaitForCompany) {
  start(2);
  submit(0, request(0, "x"));
  const Ticket ticket = submit(1, request(1, "x"));
  settle();
  EXPECT_EQ(error(1, ticket), "not ended");
  EXPECT_EQ(control(0).next_deadline(), now_.plus_us(limits_.coalesce_us));
  control(1).urge(now_);
  settle();
  EXPECT_EQ(error(1, ticket), "");
}

// R14: all get the error, with ranks and both values, and the next operation works.
TEST_F(Controls, AMismatchReachesAllAndTheSetStaysUsable) {
  start(3);
  const Ticket t0 = submit(0, request(0, "x", {2})), t1 = submit(1, request(1, "x", {3})),
               t2 = submit(2, request(2, "x", {2}));
  settle();
  const std::string expected = "x: rank 1 sent float32 (3,), rank 0 float32 (2,)";
  EXPECT_EQ(error(0, t0), expected);
  EXPECT_EQ(error(1, t1), expected);
  EXPECT_EQ(error(2, t2), expected);
  EXPECT_EQ(ended(1, t1)->status.code(), Code::mismatch);
  for (int member = 0; member < 3; ++member) {
    const Ticket ticket = submit(member, request(member, "x", {2}), true);
    settle();
    if (member == 2) {
      EXPECT_EQ(error(2, ticket), "");
    }
  }
}

// R6: two ranks that wait for different names hear of each other.
TEST_F(Controls, NamesThatNeverMeetFailWithBothInTheVerdict) {
  limits_.op_deadline_ms = 5000;
  start(2);
  const Ticket t0 = submit(0, request(0, "x0"), true), t1 = submit(1, request(1, "x1"), true);
  settle();
  now_ = now_.plus_ms(5000);
  settle();
  EXPECT_EQ(error(0, t0),
            "x0 is stalled in process set 0 after 5 s, missing rank 1; rank 0 asked for it; rank 1 waits for x1, "
            "missing rank 0");
  EXPECT_EQ(error(1, t1),
            "x1 is stalled in process set 0 after 5 s, missing rank 0; rank 1 asked for it; rank 0 waits for x0, "
            "missing rank 1");
  EXPECT_EQ(ended(0, t0)->status.code(), Code::stalled);
}

TEST_F(Controls, StallWarningsAreNoticesOfTheDecider) {
  start(2);
  submit(1, request(1, "x"), true);
  settle();
  now_ = now_.plus_ms(limits_.stall_warning_ms);
  settle();
  ASSERT_EQ(control(0).notices().size(), 1u);
  EXPECT_NE(control(0).notices()[0].text.find("x since 60 s, missing rank 0"), std::string::npos);
  EXPECT_EQ(control(0).counters().stall_warnings, 1u);
  EXPECT_TRUE(control(1).notices().empty());
  EXPECT_EQ(control(0).last_heard(1, now_), "waits for x, missing rank 0");
}

TEST_F(Controls, AJoinEndsForAllWithTheLastRank) {
  start(3);
  std::vector<Ticket> joins;
  for (const int member : {2, 0, 1}) {
    control(member).join(static_cast<Ticket>(100 + member), now_);
    settle();
  }
  for (int member = 0; member < 3; ++member) {
    ASSERT_TRUE(ended(member, static_cast<Ticket>(100 + member)));
    EXPECT_EQ(ended(member, static_cast<Ticket>(100 + member))->decision.last_joined, 1);
    EXPECT_EQ(control(member).undecided(), 0u);
  }
}

TEST_F(Controls, AMemberWhoseDeciderIsSilentSaysSo) {
  limits_.op_deadline_ms = 5000;
  start(2);
  submit(1, request(1, "x"));
  control(1).step(now_);
  control(1).outgoing().clear();
  EXPECT_EQ(control(1).next_deadline(), now_.plus_ms(6000));
  now_ = now_.plus_ms(5999);
  control(1).step(now_);
  EXPECT_TRUE(control(1).status().ok());
  now_ = now_.plus_ms(1);
  control(1).step(now_);
  EXPECT_EQ(control(1).status().code(), Code::peer_lost);
  EXPECT_EQ(control(1).status().culprit(), 0);
  EXPECT_EQ(control(1).status().text(),
            "rank 0, which decides in process set 0, did not answer: x is undecided 6 s after it was asked for");
  EXPECT_EQ(control(1).next_deadline(), Time::never());
}

TEST_F(Controls, AMemberThatLeavesFailsWhatNeedsItForAll) {
  start(3);
  const Ticket t0 = submit(0, request(0, "x"), true), t2 = submit(2, request(2, "x"), true);
  settle();
  const Status why = Status::peer_lost(1, "rank 1 finished normally");
  control(0).leave(1, why, now_);
  control(2).leave(1, why, now_);
  EXPECT_LE(control(0).next_deadline(), now_);
  settle();
  EXPECT_EQ(error(0, t0), "x needs it: rank 1 finished normally");
  EXPECT_EQ(error(2, t2), "x needs it: rank 1 finished normally");
  EXPECT_EQ(ended(2, t2)->status.code(), Code::peer_lost);
  EXPECT_EQ(ended(2, t2)->status.culprit(), 1);
}

TEST_F(Controls, ADeciderThatLeavesFailsWhatIsUndecided) {
  start(2);
  const Ticket first = submit(1, request(1, "x"), true);
  settle_one(1);
  control(1).leave(0, Status::peer_lost(0, "rank 0 finished normally"), now_);
  settle_one(1);
  EXPECT_EQ(error(1, first), "x needs it: rank 0 finished normally");
  const Ticket second = submit(1, request(1, "y"));
  EXPECT_LE(control(1).next_deadline(), now_);
  settle_one(1);
  EXPECT_EQ(error(1, second), "y needs it: rank 0 finished normally");
  EXPECT_EQ(control(1).next_deadline(), Time::never());
}

TEST_F(Controls, RefusesMessagesThatCannotBeReadAndNamesTheSender) {
  start(3);
  const std::byte garbage[] = {std::byte{9}};
  const Status status = control(0).receive(2, garbage, now_);
  EXPECT_EQ(status.code(), Code::internal);
  EXPECT_EQ(status.culprit(), 2);
  EXPECT_NE(status.text().find("from rank 2: announcement of 1 bytes cannot be read"), std::string::npos);
  EXPECT_FALSE(control(0).status().ok());
  EXPECT_EQ(control(1).receive(2, garbage, now_).text(),
            "from rank 2: a control message in process set 0, which rank 0 decides");
}

TEST_F(Controls, HasSomethingToDoAsLongAsSomethingIsUntold) {
  start(2);
  EXPECT_EQ(control(1).next_deadline(), Time::never());
  submit(1, request(1, "x"));
  EXPECT_LE(control(1).next_deadline(), now_);
  control(1).step(now_);
  EXPECT_GT(control(1).next_deadline(), now_);
  ASSERT_EQ(control(1).outgoing().size(), 1u);
  EXPECT_TRUE(control(0).receive(1, control(1).outgoing()[0].bytes, now_).ok());
  EXPECT_LE(control(0).next_deadline(), now_);
}

}  // namespace
}  // namespace halay::control
