#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/name_table.h"
#include "base/status.h"
#include "base/text.h"

namespace halay {
namespace {

TEST(Status, IsOkAndFreeWhenNothingFailed) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::ok);
  EXPECT_EQ(status.text(), "");
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Status, KeepsCodeTextAndCulpritThroughCopies) {
  const Status lost = Status::peer_lost(2, "rank 2 died");
  Status copy = lost;
  copy = Status(copy);
  EXPECT_EQ(copy.code(), Code::peer_lost);
  EXPECT_EQ(copy.culprit(), 2);
  EXPECT_EQ(copy.text(), "rank 2 died");
  EXPECT_EQ(lost.text(), "rank 2 died");
}

TEST(Status, NamesEveryCodeOfTheTable) {
#define HALAY_STATUS(name, number, blast) \
  EXPECT_EQ(name_of(Code::name), #name);  \
  EXPECT_EQ(static_cast<int>(Code::name), number);
#include "base/status.def"
#undef HALAY_STATUS
}

Result<int> half(int value) {
  if (value % 2 != 0) return Status::invalid_argument(text(value, " is odd"));
  return value / 2;
}

Result<int> quarter(int value) {
  HALAY_TRY(const int once, half(value));
  HALAY_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, CarriesAValueOrTheReasonWhyThereIsNone) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).status().text(), "3 is odd");
}

TEST(ResultDeathTest, DiesWhenAValueIsTakenThatIsNotThere) { EXPECT_DEATH((void)half(3).value(), "does not hold"); }

TEST(Text, JoinsPartsListsAndNumbers) {
  EXPECT_EQ(text("rank ", 3, " of ", std::vector<int>{0, 2}, ' ', 0.1, ' ', true), "rank 3 of [0, 2] 0.1 true");
}

TEST(Time, NeverStaysNever) {
  EXPECT_EQ(Time::never().plus_ms(5), Time::never());
  EXPECT_EQ(Time{5}.plus_us(2), Time{2005});
  EXPECT_LT(Time{INT64_MAX - 1}, Time::never());
}

TEST(Clock, NeverGoesBack) {
  const Time first = system_clock().now();
  EXPECT_GE(system_clock().now(), first);
}

TEST(NameTable, GivesTheSameTextTheSameNumber) {
  NameTable names;
  const NameId a = names.intern("a"), b = names.intern("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(names.intern("a"), a);
  EXPECT_EQ(names.text(b), "b");
  EXPECT_EQ(names.text(NameId{0}), "");
  EXPECT_EQ(names.intern(""), NameId{0});
}

TEST(NameTable, KeepsTextsInPlaceWhileItGrows) {
  NameTable names;
  const std::string_view first = names.text(names.intern("the first of many"));
  for (int i = 0; i < 5000; ++i) names.intern(text("name ", i));
  EXPECT_EQ(first, "the first of many");
  EXPECT_EQ(names.size(), 5002u);
}

}  // namespace
}  // namespace halay
