#include "launch/line_prefixer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace halay::launch {
namespace {

std::string fed(std::initializer_list<std::string_view> pieces, std::string_view stamp = "") {
  LinePrefixer prefixer("[7]<stdout>:");
  std::string out;
  for (const std::string_view piece : pieces) prefixer.feed(piece, stamp, out);
  prefixer.finish(stamp, out);
  return out;
}

TEST(LinePrefixer, EveryLineHasItsPrefix) {
  EXPECT_EQ(fed({"a\nb\n"}), "[7]<stdout>:a\n[7]<stdout>:b\n");
  EXPECT_EQ(fed({"\n\n"}), "[7]<stdout>:\n[7]<stdout>:\n");
  EXPECT_EQ(fed({}), "");
}

TEST(LinePrefixer, ALineComesOnlyWhenItIsWhole) {
  LinePrefixer prefixer("p:");
  std::string out;
  prefixer.feed("half", "", out);
  EXPECT_EQ(out, "");
  prefixer.feed(" and half\nrest", "", out);
  EXPECT_EQ(out, "p:half and half\n");
}

TEST(LinePrefixer, ACarriageReturnEndsALineAndTogetherWithANewlineOnlyOne) {
  EXPECT_EQ(fed({"10%\r20%\r"}), "[7]<stdout>:10%\r[7]<stdout>:20%\r");
  EXPECT_EQ(fed({"a\r\nb\n"}), "[7]<stdout>:a\r\n[7]<stdout>:b\n");
}

TEST(LinePrefixer, AnUnfinishedLineGetsAnEnd) { EXPECT_EQ(fed({"abc"}), "[7]<stdout>:abc\n"); }

TEST(LinePrefixer, TheTimeStandsBeforeThePrefix) { EXPECT_EQ(fed({"x\n"}, "Mon "), "Mon [7]<stdout>:x\n"); }

TEST(LinePrefixer, AnEndlessLineIsCutAndItsMemoryBounded) {
  LinePrefixer prefixer("");
  std::string out;
  const std::string piece(1000, 'x');
  size_t fed_bytes = 0;
  for (; fed_bytes < 3 * kLineBytesMost; fed_bytes += piece.size()) prefixer.feed(piece, "", out);
  EXPECT_GE(out.size(), 2 * kLineBytesMost);
  EXPECT_EQ(out.find('\n'), kLineBytesMost);
  prefixer.finish("", out);
  EXPECT_EQ(std::ranges::count(out, 'x'), static_cast<ptrdiff_t>(fed_bytes)) << "nothing is lost";
}

TEST(LinePrefixer, HowTheBytesAreCutMakesNoDifference) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    for (int i = 0; i < 60; ++i) bytes += "ab\n"[random() % 3];
    LinePrefixer prefixer("P");
    std::string out;
    for (size_t at = 0; at < bytes.size();) {
      const size_t step = 1 + random() % 7;
      prefixer.feed(std::string_view(bytes).substr(at, step), "", out);
      at += step;
    }
    prefixer.finish("", out);
    LinePrefixer whole("P");
    std::string expected;
    whole.feed(bytes, "", expected);
    whole.finish("", expected);
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace halay::launch
