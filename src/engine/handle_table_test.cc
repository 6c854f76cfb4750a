#include "engine/handle_table.h"

#include <gtest/gtest.h>

#include <thread>

namespace halay::engine {
namespace {

TEST(HandleTable, FindsWhatIsOpenAndNothingElse) {
  HandleTable table;
  Operation* operation = table.open();
  const Handle handle = operation->handle;
  EXPECT_NE(handle, 0U);
  EXPECT_EQ(table.find(handle), operation);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(handle + 1), nullptr);
  EXPECT_EQ(table.find(~Handle{0}), nullptr);
}

TEST(HandleTable, AnOldHandleDoesNotHitTheNextLifeOfItsSlot) {
  HandleTable table;
  Operation* operation = table.open();
  const Handle first = operation->handle;
  table.complete(*operation, {});
  table.release(first);
  EXPECT_EQ(table.find(first), nullptr);
  Operation* again = table.open();
  EXPECT_EQ(again, operation);
  EXPECT_NE(again->handle, first);
  EXPECT_EQ(table.find(first), nullptr);
  table.release(first);  // ignored
  EXPECT_EQ(table.find(again->handle), again);
}

TEST(HandleTable, AReleaseWhilePendingFreesTheSlotWhenTheOperationEnds) {
  HandleTable table;
  Operation* operation = table.open();
  table.release(operation->handle);
  EXPECT_EQ(table.open_count(), 1U);
  table.complete(*operation, {});
  EXPECT_EQ(table.open_count(), 0U);
}

TEST(HandleTable, GivesStatusAndResultOnlyOfWhatIsDone) {
  HandleTable table;
  Operation* operation = table.open();
  const auto use = [](Operation&) { return Status(); };
  EXPECT_EQ(table.with_done(operation->handle, use).code(), Code::invalid_argument);
  table.complete(*operation, Status::mismatch("ranks disagree"));
  EXPECT_EQ(table.with_done(operation->handle, use).code(), Code::mismatch);
  EXPECT_EQ(table.status_of(operation->handle).text(), "ranks disagree");
  EXPECT_EQ(table.status_of(77).code(), Code::invalid_argument);
}

TEST(HandleTable, ReportsCompletionsOnceFromTheFirstQuestionOn) {
  HandleTable table;
  Handle out[4];
  Operation* before = table.open();
  EXPECT_EQ(table.take_completed(out), 0U);
  Operation* after = table.open();
  table.complete(*before, {});
  table.complete(*after, {});
  EXPECT_TRUE(table.has_completed());
  ASSERT_EQ(table.take_completed(out), 1U);
  EXPECT_EQ(out[0], after->handle);
  EXPECT_EQ(table.take_completed(out), 0U);
}

TEST(HandleTable, GrowsWithoutMovingWhatIsThere) {
  HandleTable table;
  std::vector<Operation*> operations;
  for (int i = 0; i < 5000; ++i) operations.push_back(table.open());
  for (Operation* operation : operations) EXPECT_EQ(table.find(operation->handle), operation);
  EXPECT_EQ(table.pending().size(), 5000U);
}

TEST(HandleTable, ManyThreadsOpenCompleteAndReleaseAtOnce) {
  HandleTable table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        Operation* operation = table.open();
        const Handle handle = operation->handle;
        table.complete(*operation, {});
        EXPECT_TRUE(table.status_of(handle).ok());
        table.release(handle);
        (void)table.find(handle);  // an old handle, while others live in the slot
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.open_count(), 0U);
}

}  // namespace
}  // namespace halay::engine
