#include "net/frame.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/text.h"

namespace halay::net {
namespace {

Time soon() { return system_clock().now().plus_ms(10'000); }

// R37 of spec/users.md.
TEST(Frame, R37HeaderBeyondTwoGigabytesComesBackWithoutAllocation) {
  const FrameHeader header{7, (uint64_t{1} << 31) + 5};
  const auto back = decode_frame_header(encode(header), UINT64_MAX);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value(), header);
}

TEST(Frame, EachByteOfTheHeaderMatters) {
  const FrameHeader header{0x01020304, 0x1122334455667788};
  const auto bytes = encode(header);
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    const auto back = decode_frame_header(changed, UINT64_MAX);
    EXPECT_FALSE(back.ok() && back.value() == header) << i;
  }
  EXPECT_FALSE(decode_frame_header(std::span(bytes).first(15), UINT64_MAX).ok());
}

TEST(Frame, PassesInPiecesOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}, size_t{200'000}}) {
    StreamPair pair = std::move(stream_pair()).value();
    std::vector<std::byte> payload(size);
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<std::byte>(i * 31);
    FrameWriter writer;
    writer.queue(3, payload);
    writer.queue(4, bytes_of("second"));
    FrameReader reader(1 << 20);
    std::vector<Frame> got;
    while (got.size() < 2) {
      const auto flushed = writer.flush(*pair.first);
      ASSERT_TRUE(flushed.ok());
      auto frame = reader.read(*pair.second);
      ASSERT_TRUE(frame.ok()) << frame.status().text();
      if (frame.value()) got.push_back(*std::move(frame).value());
    }
    EXPECT_EQ(writer.queued_bytes(), 0u);
    EXPECT_EQ(got[0].kind, 3u);
    EXPECT_EQ(got[0].payload, payload);
    EXPECT_EQ(text_of(got[1].payload), "second");
  }
}

TEST(Frame, ALongerOneThanAllowedIsRefusedByItsHeaderAlone) {
  StreamPair pair = std::move(stream_pair()).value();
  const auto head = encode({1, 101});
  const std::span<const std::byte> part = head;
  ASSERT_TRUE(pair.first->write_some({&part, 1}).ok());
  FrameReader reader(100);
  const auto frame = reader.read(*pair.second);
  ASSERT_FALSE(frame.ok());
  EXPECT_EQ(frame.status().text(), "a frame of 101 bytes, at most 100 are allowed");
}

TEST(Frame, AnEndInsideAFrameIsNotAnEnd) {
  for (const size_t cut : {size_t{3}, size_t{16}, size_t{18}}) {
    StreamPair pair = std::move(stream_pair()).value();
    FrameWriter writer;
    ByteWriter whole;
    whole.bytes(encode({1, 5})).bytes(bytes_of("12345"));
    const std::span<const std::byte> part = whole.view().first(cut);
    ASSERT_TRUE(pair.first->write_some({&part, 1}).ok());
    pair.first.reset();
    FrameReader reader(100);
    const auto frame = reader.read(*pair.second);
    ASSERT_FALSE(frame.ok());
    EXPECT_EQ(frame.status().text(), "pair: the peer closed inside a frame") << cut;
  }
}

TEST(Frame, WaitsForAnAnswerUntilItsDeadlineOnly) {
  StreamPair pair = std::move(stream_pair()).value();
  FrameReader reader(100);
  EXPECT_EQ(read_frame(*pair.second, reader, "ask the store", system_clock().now().plus_ms(10)).status().text(),
            "ask the store (pair): timed out waiting for an answer");
  ASSERT_TRUE(write_frame(*pair.first, 9, bytes_of("hi"), "answer", soon()).ok());
  const auto frame = read_frame(*pair.second, reader, "ask the store", soon());
  ASSERT_TRUE(frame.ok());
  EXPECT_EQ(frame.value().kind, 9u);
}

}  // namespace
}  // namespace halay::net
