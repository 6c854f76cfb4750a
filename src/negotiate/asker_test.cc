#include "negotiate/asker.h"

#include <gtest/gtest.h>

namespace halay::negotiate {
namespace {

constexpr int kMe = 1;

class Asking : public ::testing::Test {
 protected:
  Request request(std::string_view name, int64_t elements = 4, OpKind kind = OpKind::allreduce) {
    Request made;
    made.name = names_.intern(name);
    made.kind = kind;
    made.shape = Shape{elements};
    return made;
  }
  Ticket submit(const Request& request, bool urgent = false) {
    const auto ticket = static_cast<Ticket>(++last_ticket_);
    asker_.submit(ticket, request, urgent, now_);
    return ticket;
  }
  // What the member tells, once.
  Announcement told() {
    EXPECT_TRUE(asker_.has_news());
    Announcement news = asker_.news();
    asker_.told();
    EXPECT_FALSE(asker_.has_news());
    return news;
  }
  std::unique_ptr<ListMessage> list(std::vector<ListItem> items, std::vector<FreshDecision> fresh = {}) {
    auto made = std::make_unique<ListMessage>();
    made->number = ++last_list_;
    made->items = std::move(items);
    made->fresh = std::move(fresh);
    return made;
  }
  const DecisionList* apply(std::unique_ptr<ListMessage> message) {
    EXPECT_TRUE(asker_.receive(std::move(message), now_).ok());
    return asker_.next_list();
  }
  FreshDecision fresh(std::string_view name, uint32_t cache_id) {
    FreshDecision made;
    made.decision.name = names_.intern(name);
    made.decision.shape = Shape{4};
    made.decision.cache_id = cache_id;
    return made;
  }
  FreshDecision failed(std::string_view name, std::vector<int> asked) {
    FreshDecision made = fresh(name, 0);
    made.decision.status = Status::stalled("too late");
    made.asked = std::move(asked);
    return made;
  }
  // x is decided and known under number 1.
  void know_x() {
    submit(request("x"));
    told();
    ASSERT_TRUE(apply(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)})));
  }

  NameTable names_;
  Asker asker_{kMe, 3, names_};
  Time now_{1000};
  uint64_t last_ticket_ = 0;
  uint64_t last_list_ = 0;
};

TEST_F(Asking, SendsANewNameInFullAndAKnownOneAsItsNumber) {
  const Ticket first = submit(request("x"));
  Announcement news = told();
  ASSERT_EQ(news.requests.size(), 1u);
  EXPECT_EQ(news.applied, 0u);
  const DecisionList* decided = apply(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)}));
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decided[0].ticket, first);
  EXPECT_EQ(asker_.undecided(), 0u);

  for (uint32_t round = 0; round < 3; ++round) {
    const Ticket again = submit(request("x"));
    news = told();
    EXPECT_TRUE(news.requests.empty());
    EXPECT_EQ(news.repeats, (std::vector<Repeat>{{1, round}}));
    EXPECT_EQ(news.applied, last_list_);
    decided = apply(list({{ListItemKind::repeat, 1}}));
    ASSERT_TRUE(decided);
    EXPECT_EQ(decided->decided[0].ticket, again);
    EXPECT_EQ(decided->decided[0].decision->name, request("x").name);
  }
  EXPECT_EQ(asker_.cache_hits(), 3u);
  EXPECT_EQ(asker_.cache_misses(), 1u);
}

TEST_F(Asking, SendsAChangedTensorInFullUnderTheNextGeneration) {
  know_x();
  submit(request("x", 5));
  EXPECT_EQ(told().requests.size(), 1u);
  FreshDecision changed = fresh("x", 1);
  changed.decision.shape = Shape{5};
  ASSERT_TRUE(apply(list({{ListItemKind::fresh, 0}}, {std::move(changed)})));
  submit(request("x", 5));
  EXPECT_EQ(told().repeats, (std::vector<Repeat>{{1, 1}}));
}

TEST_F(Asking, KeepsItsOwnRowsInADecisionForAll) {
  submit(request("g", 7, OpKind::allgather));
  told();
  FreshDecision gather = fresh("g", 1);
  gather.decision.kind = OpKind::allgather;
  gather.decision.shape = Shape{0};
  gather.decision.rows = {1, 7, 2};
  EXPECT_EQ(apply(list({{ListItemKind::fresh, 0}}, {gather}))->decided[0].decision->shape, (Shape{7}));
  submit(request("g", 7, OpKind::allgather));
  EXPECT_EQ(told().repeats.size(), 1u);
  // Another member's rows changed: the number stays, and so do this member's rows.
  gather.decision.rows = {9, 7, 2};
  const DecisionList* decided = apply(list({{ListItemKind::fresh, 0}}, {gather}));
  EXPECT_EQ(decided->decided[0].decision->shape, (Shape{7}));
  EXPECT_EQ(decided->decided[0].decision->rows[0], 9);
  submit(request("g", 7, OpKind::allgather));
  EXPECT_EQ(told().repeats, (std::vector<Repeat>{{1, 1}}));
}

TEST_F(Asking, ForgetsWhatIsEvictedAndAsksInFull) {
  know_x();
  ASSERT_TRUE(apply(list({{ListItemKind::evict, 1}})));
  submit(request("x"));
  EXPECT_EQ(told().requests.size(), 1u);
}

TEST_F(Asking, AnEvictionDoesNotLoseWhatWasAsked) {
  know_x();
  const Ticket ticket = submit(request("x"));
  told();
  ASSERT_TRUE(apply(list({{ListItemKind::evict, 1}})));
  EXPECT_EQ(asker_.undecided(), 1u);
  EXPECT_EQ(apply(list({{ListItemKind::fresh, 0}}, {fresh("x", 2)}))->decided[0].ticket, ticket);
}

TEST_F(Asking, ReportsAfterManyEvictionsEvenWithNothingToAsk) {
  for (uint32_t id = 1; id <= 64; ++id) {
    const std::string name = "x" + std::to_string(id);
    submit(request(name));
    told();
    ASSERT_TRUE(apply(list({{ListItemKind::fresh, 0}}, {fresh(name, id)})));
  }
  EXPECT_FALSE(asker_.has_news());
  for (uint32_t id = 1; id <= 64; ++id) ASSERT_TRUE(apply(list({{ListItemKind::evict, id}})));
  EXPECT_EQ(told().applied, last_list_);
}

TEST_F(Asking, AFailureEndsOnlyTheTicketsOfThoseItAnswers) {
  const Ticket mine = submit(request("x"));
  told();
  const DecisionList* decided = apply(list({{ListItemKind::failed, 0}}, {failed("x", {0, 2})}));
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decided[0].ticket, Ticket::none);
  EXPECT_EQ(asker_.undecided(), 1u);
  decided = apply(list({{ListItemKind::failed, 0}}, {failed("x", {1})}));
  EXPECT_EQ(decided->decided[0].ticket, mine);
  EXPECT_EQ(decided->decided[0].decision->status.text(), "too late");
  EXPECT_EQ(asker_.undecided(), 0u);
}

TEST_F(Asking, HoldsRequestsBackWhileItHasJoined) {
  asker_.join(static_cast<Ticket>(70), now_);
  EXPECT_TRUE(told().joined);
  const Ticket held = submit(request("x"));
  EXPECT_FALSE(asker_.has_news());
  EXPECT_EQ(asker_.undecided(), 2u);
  const DecisionList* decided = apply(list({{ListItemKind::join, 2}}));
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decided[0].ticket, static_cast<Ticket>(70));
  EXPECT_EQ(decided->decided[0].decision->last_joined, 2);
  EXPECT_EQ(told().requests.size(), 1u);
  EXPECT_EQ(apply(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)}))->decided[0].ticket, held);
}

TEST_F(Asking, LearnsWhatIsDecidedWithoutItWhileItHasJoined) {
  asker_.join(static_cast<Ticket>(70), now_);
  told();
  auto message = list({{ListItemKind::fresh, 0}}, {fresh("x", 1)});
  message->joined = {kMe};
  EXPECT_EQ(apply(std::move(message))->decided[0].ticket, Ticket::none);
  ASSERT_TRUE(apply(list({{ListItemKind::join, 0}})));
  submit(request("x"));
  EXPECT_EQ(told().repeats, (std::vector<Repeat>{{1, 0}}));
}

TEST_F(Asking, UrgesOnceForWhatIsUndecided) {
  asker_.urge();
  EXPECT_FALSE(asker_.has_news());
  submit(request("x"));
  EXPECT_FALSE(told().urgent);
  asker_.urge();
  EXPECT_TRUE(told().urgent);
  asker_.urge();
  EXPECT_FALSE(asker_.has_news());
  submit(request("y"), true);
  EXPECT_TRUE(told().urgent);
}

TEST_F(Asking, RefusesListsOutOfOrder) {
  last_list_ = 1;
  EXPECT_EQ(asker_.receive(list({}), now_).text(), "decision list 2 came after list 0");
}

TEST_F(Asking, RefusesListsThatContradictWhatItKnows) {
  EXPECT_FALSE(apply(list({{ListItemKind::repeat, 4}})));
  EXPECT_EQ(asker_.status().text(), "decision list 1 has the unknown cache number 4");
  Asker other(kMe, 3, names_);
  last_list_ = 0;
  EXPECT_TRUE(other.receive(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)}), now_).ok());
  EXPECT_FALSE(other.next_list());
  EXPECT_EQ(other.status().text(), "decision list 1 has x, for which this rank did not ask");
}

TEST_F(Asking, ACacheNumberMeansOneNameAndANameHasOneNumber) {
  know_x();
  submit(request("y"));
  EXPECT_FALSE(apply(list({{ListItemKind::fresh, 0}}, {fresh("y", 1)})));
  EXPECT_EQ(asker_.status().text(), "decision list 2 has cache number 1 for y, against an earlier list");
  Asker other(kMe, 3, names_);
  other.submit(static_cast<Ticket>(1), request("x"), false, now_);
  last_list_ = 0;
  EXPECT_TRUE(other.receive(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)}), now_).ok());
  ASSERT_TRUE(other.next_list());
  other.submit(static_cast<Ticket>(2), request("x"), false, now_);
  EXPECT_TRUE(other.receive(list({{ListItemKind::fresh, 0}}, {fresh("x", 2)}), now_).ok());
  EXPECT_FALSE(other.next_list());
}

TEST_F(Asking, AppliesListsOnlyWhenTheyAreTaken) {
  know_x();
  submit(request("x"));
  told();
  EXPECT_TRUE(asker_.receive(list({{ListItemKind::repeat, 1}}), now_).ok());
  EXPECT_TRUE(asker_.receive(list({{ListItemKind::evict, 1}}), now_).ok());
  EXPECT_EQ(asker_.applied(), 1u);
  const DecisionList* decided = asker_.next_list();
  EXPECT_EQ(decided->number, 2u);
  EXPECT_EQ(decided->decided[0].decision->shape, (Shape{4}));
  EXPECT_EQ(asker_.next_list()->number, 3u);
  EXPECT_EQ(asker_.next_list(), nullptr);
}

TEST_F(Asking, WhenTheDeciderHasLeftEverythingUndecidedFails) {
  const Ticket before = submit(request("x"));
  const Ticket after = submit(request("g", 3, OpKind::allgather));
  told();
  EXPECT_TRUE(asker_.receive(list({{ListItemKind::fresh, 0}}, {fresh("x", 1)}), now_).ok());
  asker_.end(Status::peer_lost(0, "rank 0 finished"));
  EXPECT_TRUE(asker_.has_list());
  EXPECT_EQ(asker_.next_list()->decided[0].ticket, before);  // what it decided still counts
  const DecisionList* failed = asker_.next_list();
  ASSERT_TRUE(failed);
  ASSERT_EQ(failed->decided.size(), 1u);
  EXPECT_EQ(failed->decided[0].ticket, after);
  EXPECT_EQ(failed->decided[0].decision->kind, OpKind::allgather);
  EXPECT_EQ(failed->decided[0].decision->status.text(), "g needs it: rank 0 finished");
  EXPECT_EQ(failed->decided[0].decision->status.culprit(), 0);
  EXPECT_EQ(asker_.next_list(), nullptr);

  submit(request("y"));
  asker_.join(static_cast<Ticket>(70), now_);
  submit(request("held"));
  EXPECT_FALSE(asker_.has_news());
  failed = asker_.next_list();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->decided.size(), 3u);
  EXPECT_EQ(asker_.undecided(), 0u);
}

TEST_F(Asking, KnowsSinceWhenItWaits) {
  EXPECT_EQ(asker_.waiting_since(), Time::never());
  submit(request("x"));
  now_ = Time{2000};
  submit(request("y"));
  EXPECT_EQ(asker_.waiting_since(), Time{1000});
  EXPECT_EQ(asker_.waiting_for(), "x");
  told();
  apply(list({{ListItemKind::fresh, 0}}, {fresh("x", 0)}));
  EXPECT_EQ(asker_.waiting_since(), Time{2000});
  EXPECT_EQ(asker_.waiting_for(), "y");
}

}  // namespace
}  // namespace halay::negotiate
