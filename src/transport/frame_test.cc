#include "transport/frame.h"

#include <gtest/gtest.h>

#include <cstring>

namespace halay::transport {
namespace {

TEST(FrameHeader, ReadsBackAsItWasWritten) {
  const FrameHeader header{FrameKind::control, 0xfedcba98u, 0x0123456789abcdefu, 12345};
  EXPECT_EQ(decode_frame_header(encode(header)).value(), header);
}

TEST(FrameHeader, HasTheseBytes) {
  const auto bytes = encode({FrameKind::abort, 0x04030201u, 0x1817161514131211u, 5});
  const unsigned char golden[kFrameHeaderBytes] = {0x48, 0x4c, 4,    0,    1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14,
                                                   0x15, 0x16, 0x17, 0x18, 5, 0, 0, 0, 0,    0,    0,    0};
  EXPECT_EQ(std::memcmp(bytes.data(), golden, sizeof golden), 0);
}

TEST(FrameHeader, BrokenInAnyFieldIsRefusedWithWords) {
  const auto good = encode({FrameKind::control, 1, 2, 3});
  const auto refused = [&](size_t at, unsigned char value) {
    auto bytes = good;
    bytes[at] = std::byte{value};
    const auto decoded = decode_frame_header(bytes);
    EXPECT_EQ(decoded.status().code(), Code::internal);
    return decoded.status().text();
  };
  EXPECT_NE(refused(0, 0).find("does not begin as one"), std::string::npos);
  EXPECT_NE(refused(3, 1).find("does not begin as one"), std::string::npos);
  EXPECT_EQ(refused(2, 9), "a frame of unknown kind 9");
  EXPECT_NE(refused(23, 0x80).find("with"), std::string::npos);
  EXPECT_EQ(decode_frame_header(std::span(good).first(23)).status().text(), "a frame header of 23 bytes, not 24");
}

TEST(FrameHeader, DataMayBeLargerThanMessages) {
  EXPECT_TRUE(decode_frame_header(encode({FrameKind::data, 0, 0, kMostDataBytes})).ok());
  EXPECT_FALSE(decode_frame_header(encode({FrameKind::data, 0, 0, kMostDataBytes + 1})).ok());
  EXPECT_FALSE(decode_frame_header(encode({FrameKind::control, 0, 0, kMostMessageBytes + 1})).ok());
}

}  // namespace
}  // namespace halay::transport
