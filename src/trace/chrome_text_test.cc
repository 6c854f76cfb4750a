#include "trace/chrome_text.h"

#include <gtest/gtest.h>

#include "trace/json_for_test.h"

namespace halay::trace {
namespace {

std::string in_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

class ChromeTextTest : public testing::Test {
 protected:
  NameTable names;
  NameId name = names.intern("grad/w1");
  ChromeText chrome{names, {.rank = 1, .size = 4, .mark_cycles = true, .start_at = {1'000'000}}};
  std::string out;
};

TEST_F(ChromeTextTest, TellsTheLifeOfATensorInHorovodsWords) {
  const auto at = [](int64_t us) { return Time{1'000'000 + us * 1000 + 7}; };
  const auto kind = static_cast<uint8_t>(OpKind::allreduce);
  const int64_t dims[] = {2, 3};
  chrome.append(out, {at(1), name, EventKind::negotiate_begin, kind}, {});
  chrome.append(out, {at(2), name, EventKind::rank_ready, 0, 0, 3}, {});
  chrome.append(out, {at(3), name, EventKind::negotiate_end}, {});
  chrome.append(out, {at(4), name, EventKind::operation_begin, kind}, {});
  chrome.append(out, {at(5), name, EventKind::activity_begin, static_cast<uint8_t>(Activity::SHM_ALLREDUCE)}, {});
  chrome.append(out, {at(6), name, EventKind::activity_end}, {});
  chrome.append(out, {at(7), name, EventKind::operation_end, static_cast<uint8_t>(DType::float32), 2, 6}, dims);
  chrome.append(out, {at(8), {}, EventKind::list_decided, 0, 0, 12}, {});
  EXPECT_EQ(out,
            R"({"name":"process_name","ph":"M","pid":1,"args":{"name":"grad/w1"}},
{"name":"process_sort_index","ph":"M","pid":1,"args":{"sort_index":1}},
{"ph":"B","name":"NEGOTIATE_ALLREDUCE","ts":1.007,"pid":1},
{"ph":"X","name":"3","dur":0,"ts":2.007,"pid":1},
{"ph":"E","ts":3.007,"pid":1},
{"ph":"B","name":"ALLREDUCE","ts":4.007,"pid":1},
{"ph":"B","name":"SHM_ALLREDUCE","ts":5.007,"pid":1},
{"ph":"E","ts":6.007,"pid":1},
{"ph":"E","ts":7.007,"pid":1,"args":{"dtype":"float32","shape":"[2, 3]"}},
{"ph":"i","name":"CYCLE_START","s":"g","pid":0,"ts":8.007,"args":{"list":12}},
)");
}

TEST_F(ChromeTextTest, BeginsWithTheMomentOfTheStart) {
  chrome.append_header(out, 1'700'000'000'000'001);
  EXPECT_EQ(out, R"({"name":"process_name","ph":"M","pid":0,"args":{"name":"halay rank 1 of 4","rank":1,"size":4,)"
                 R"("start_time_since_epoch_in_micros":1700000000000001}},
{"name":"process_sort_index","ph":"M","pid":0,"args":{"sort_index":0}},
)");
}

TEST_F(ChromeTextTest, LeavesOutAnEndWhoseBeginItHasNotSeen) {
  chrome.append(out, {{2'000'000}, name, EventKind::activity_end}, {});
  chrome.append(out, {{2'000'000}, name, EventKind::operation_end, 7, 0, 1}, {});
  EXPECT_EQ(out.find("\"E\""), std::string::npos);
}

TEST_F(ChromeTextTest, MarksCyclesOnlyWhenAsked) {
  ChromeText plain(names, {});
  plain.append(out, {{1}, {}, EventKind::list_decided, 0, 0, 1}, {});
  EXPECT_EQ(out, "");
}

TEST_F(ChromeTextTest, HasNegativeTimesForWhatWasBeforeTheStart) {
  chrome.append(out, {{999'500}, {}, EventKind::list_decided, 0, 0, 1}, {});
  EXPECT_NE(out.find("\"ts\":-0.500,"), std::string::npos) << out;
}

TEST_F(ChromeTextTest, IsJsonForEveryKindDtypeAndActivity) {
  for (uint8_t kind = 0; kind < 7; ++kind) {
    chrome.append(out, {{1}, name, EventKind::negotiate_begin, kind}, {});
    chrome.append(out, {{1}, name, EventKind::operation_begin, kind}, {});
  }
  for (uint8_t activity = 0; activity <= static_cast<uint8_t>(Activity::BARRIER); ++activity) {
    chrome.append(out, {{1}, name, EventKind::activity_begin, activity}, {});
  }
  for (uint8_t dtype = 0; dtype < 13; ++dtype)
    chrome.append(out, {{1}, name, EventKind::operation_end, dtype, 0, 1}, {});
  chrome.append_note(out, "EVENTS_DROPPED", "count", 5);
  const auto trace = json::parse("[" + out + "{}]");
  ASSERT_TRUE(trace.has_value()) << out;
  EXPECT_EQ(json::count(*trace, "ph", "B"), 14u + static_cast<size_t>(Activity::BARRIER) + 1);
  EXPECT_EQ(json::count(*trace, "ph", "E"), 13u);
}

TEST(JsonString, EscapesWhatWouldEndIt) {
  EXPECT_EQ(in_json("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(in_json(std::string_view("\n\t\0\x1f\x7f", 5)), R"("\u000a\u0009\u0000\u001f\u007f")");
}

TEST(JsonString, KeepsUtf8AndReplacesWhatIsNone) {
  EXPECT_EQ(in_json("halay: Zürich, \xe6\x97\xa5, \xf0\x9f\x92\x83"),
            "\"halay: Zürich, \xe6\x97\xa5, \xf0\x9f\x92\x83\"");
  EXPECT_EQ(in_json("\xff"
                    "a\xc3"),
            R"("\ufffda\ufffd")");
  EXPECT_EQ(in_json("\xc0\xaf"), R"("\ufffd\ufffd")");            // overlong
  EXPECT_EQ(in_json("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");  // half of a surrogate pair
  EXPECT_EQ(in_json("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")");
}

TEST(JsonString, IsCutWhenItIsLong) {
  const std::string out = in_json(std::string(100'000, 'x'));
  EXPECT_LT(out.size(), 1100u);
  EXPECT_TRUE(json::parse(out).has_value());
}

TEST(RecorderLine, SaysWhatHappenedInWords) {
  NameTable names;
  const NameId name = names.intern("w\n1");
  std::string out;
  append_line(out, names, {{3'000'004'000}, name, EventKind::negotiate_begin, 1});
  append_line(out, names, {{3'000'004'000}, name, EventKind::rank_ready, 0, 0, 2});
  append_line(out, names, {{3'000'004'000}, name, EventKind::operation_end, 6, 0, 10});
  append_line(out, names, {{3'000'004'000}, {}, EventKind::list_decided, 0, 0, 5});
  EXPECT_EQ(out,
            "3.000004 \"w\\u000a1\" negotiate allgather\n"
            "3.000004 \"w\\u000a1\" rank 2 ready\n"
            "3.000004 \"w\\u000a1\" done, 10 elements of float16\n"
            "3.000004 list 5 decided\n");
}

}  // namespace
}  // namespace halay::trace
