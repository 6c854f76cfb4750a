#include "engine/intake.h"

#include <gtest/gtest.h>

namespace halay::engine {
namespace {

class IntakeTest : public ::testing::Test {
 protected:
  IntakeTest() { intake_.open_set(0); }

  Submission named(std::string_view name, uint32_t flags = 0) {
    Submission submission;
    submission.request.name = names_.intern(name);
    submission.flags = flags;
    return submission;
  }
  Operation* submit(std::string_view name, uint32_t flags = 0) {
    const Submission submission = named(name, flags);
    Operation* operation = nullptr;
    last_ = intake_.submit(std::span(&submission, 1), &operation);
    return last_.ok() ? operation : nullptr;
  }
  std::vector<Operation*> group(std::vector<Submission> submissions) {
    std::vector<Operation*> operations(submissions.size());
    last_ = intake_.submit(submissions, operations.data());
    return operations;
  }
  // Names of the operations that are queued now.
  std::vector<std::string> queued() {
    std::vector<Intent> intents;
    intake_.take(intents);
    std::vector<std::string> out;
    for (const Intent& intent : intents) out.emplace_back(names_.text(intent.operation->submission.request.name));
    return out;
  }
  void finish(Operation* operation) {
    intake_.finished(std::span(&operation, 1));
    handles_.complete(*operation, {});
    handles_.release(operation->handle);
  }

  using Names = std::vector<std::string>;
  NameTable names_;
  HandleTable handles_;
  Intake intake_{handles_, names_};
  Status last_;
};

TEST_F(IntakeTest, QueuesInOrderAndIsEmptyAfterwards) {
  submit("a");
  submit("b");
  EXPECT_FALSE(intake_.empty());
  EXPECT_EQ(queued(), (Names{"a", "b"}));
  EXPECT_TRUE(intake_.empty());
  EXPECT_EQ(intake_.in_flight(0), 2U);
}

TEST_F(IntakeTest, RefusesANameInFlightUntilItIsFree) {
  Operation* first = submit("a");
  EXPECT_EQ(submit("a"), nullptr);
  EXPECT_EQ(last_.code(), Code::duplicate_name);
  EXPECT_EQ(queued(), (Names{"a"}));
  finish(first);
  EXPECT_NE(submit("a"), nullptr);
}

TEST_F(IntakeTest, LetsRepeatableOnesStandInLine) {
  Operation* first = submit("a", kRepeatable);
  Operation* second = submit("a", kRepeatable);
  submit("a", kRepeatable);
  submit("b");
  EXPECT_EQ(queued(), (Names{"a", "b"}));
  finish(first);
  EXPECT_EQ(queued(), (Names{"a"}));
  finish(second);
  EXPECT_EQ(queued(), (Names{"a"}));
}

TEST_F(IntakeTest, QueuesAGroupWhenAllItsNamesAreFree) {
  Operation* a = submit("a", kRepeatable);
  Operation* b = submit("b", kRepeatable);
  queued();
  group({named("a", kRepeatable), named("b", kRepeatable), named("c", kRepeatable)});
  EXPECT_TRUE(queued().empty());
  finish(a);
  EXPECT_TRUE(queued().empty());
  finish(b);
  EXPECT_EQ(queued(), (Names{"a", "b", "c"}));
}

TEST_F(IntakeTest, TakesAGroupAllOrNothing) {
  submit("b");
  group({named("a"), named("b")});
  EXPECT_EQ(last_.code(), Code::duplicate_name);
  EXPECT_EQ(intake_.in_flight(0), 1U);
  EXPECT_NE(submit("a"), nullptr);
  group({named("x"), named("x")});
  EXPECT_EQ(last_.code(), Code::duplicate_name);
  EXPECT_EQ(handles_.open_count(), 2U);
}

TEST_F(IntakeTest, RefusesSetsThatAreNotOpen) {
  Submission submission = named("a");
  submission.set = 3;
  Operation* operation = nullptr;
  EXPECT_EQ(intake_.submit(std::span(&submission, 1), &operation).code(), Code::not_a_member);
  intake_.open_set(3);
  EXPECT_TRUE(intake_.submit(std::span(&submission, 1), &operation).ok());
  intake_.close_set(3);
  submission.request.name = names_.intern("b");
  EXPECT_EQ(intake_.submit(std::span(&submission, 1), &operation).code(), Code::not_a_member);
}

TEST_F(IntakeTest, GivesTheReasonToAllAfterAFailure) {
  intake_.refuse_all(Status::peer_lost(2, "rank 2 died"));
  EXPECT_EQ(submit("a"), nullptr);
  EXPECT_EQ(last_.culprit(), 2);
  Operation* operation = nullptr;
  EXPECT_EQ(intake_.join(&operation).code(), Code::peer_lost);
  intake_.reset();
  intake_.open_set(0);
  EXPECT_NE(submit("a"), nullptr);
}

TEST_F(IntakeTest, AllowsOneJoinAtATime) {
  Operation *first = nullptr, *second = nullptr;
  ASSERT_TRUE(intake_.join(&first).ok());
  EXPECT_EQ(intake_.join(&second).code(), Code::duplicate_name);
  finish(first);
  EXPECT_TRUE(intake_.join(&second).ok());
}

}  // namespace
}  // namespace halay::engine
