#include "base/bytes.h"

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace halay {
namespace {

TEST(Bytes, NumbersAreLittleEndianAndComeBack) {
  ByteWriter writer;
  writer.number(uint32_t{0x01020304}).number(uint64_t{0xfedcba9876543210}).block(bytes_of("abc"));
  EXPECT_EQ(std::to_integer<int>(writer.view()[0]), 4);
  ByteReader reader(writer.view());
  EXPECT_EQ(reader.number<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.number<uint64_t>(), 0xfedcba9876543210u);
  EXPECT_EQ(text_of(reader.block(3)), "abc");
  EXPECT_TRUE(reader.complete());
}

TEST(Bytes, AReaderThatLacksOneByteStaysFailed) {
  ByteWriter writer;
  writer.number(uint32_t{7}).number(uint16_t{1});
  for (size_t length = 0; length < 6; ++length) {
    ByteReader reader(writer.view().first(length));
    reader.number<uint32_t>();
    reader.number<uint16_t>();
    EXPECT_TRUE(reader.failed()) << length;
    EXPECT_EQ(reader.number<uint8_t>(), 0) << "nothing is read after the first lack";
  }
}

TEST(Bytes, ABlockLongerThanAllowedOrThanTheRestIsRefused) {
  ByteWriter writer;
  writer.block(bytes_of("abcd"));
  ByteReader strict(writer.view());
  EXPECT_TRUE(strict.block(3).empty());
  EXPECT_TRUE(strict.failed());
  ByteWriter lying;
  lying.number(uint32_t{0xffffffff}).bytes(bytes_of("x"));
  ByteReader reader(lying.view());
  EXPECT_TRUE(reader.block(SIZE_MAX).empty());
  EXPECT_TRUE(reader.failed());
}

TEST(UniqueFd, ClosesWhatItOwnsAndNothingElse) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  {
    UniqueFd writer(ends[1]);
    UniqueFd moved(std::move(writer));
    EXPECT_FALSE(writer);
    EXPECT_EQ(moved.get(), ends[1]);
  }
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0) << "the writing end is closed";
  UniqueFd reader(ends[0]);
  EXPECT_EQ(reader.release(), ends[0]);
  EXPECT_EQ(::close(ends[0]), 0);
}

}  // namespace
}  // namespace halay
