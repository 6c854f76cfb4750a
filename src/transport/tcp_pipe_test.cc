#include "transport/tcp_pipe.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "net/stream.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

// The pipe under test and the bare other end. A poll stands for the poller.
struct Ends {
  Ends() {
    auto streams = net::stream_pair().value();
    pipe = std::make_unique<TcpPipe>(std::move(streams.first));
    other = std::move(streams.second);
  }
  void poll_once() {
    pollfd one{pipe->descriptor(), POLLIN | POLLOUT | POLLRDHUP, 0};
    ::poll(&one, 1, 1000);
    if (one.revents & (POLLIN | POLLRDHUP | POLLHUP)) pipe->became_readable(one.revents & (POLLRDHUP | POLLHUP));
    if (one.revents & POLLOUT) pipe->became_writable();
  }
  void say(size_t count) {
    const auto bytes = test_bytes(count, 1);
    const std::span<const std::byte> part = bytes;
    ASSERT_EQ(other->write_some({&part, 1}).value(), count);
  }
  size_t read(size_t count) {
    std::vector<std::byte> into(count);
    return pipe->read(into);
  }
  std::unique_ptr<TcpPipe> pipe;
  std::unique_ptr<net::Stream> other;
};

TEST(TcpPipe, GivesSmallPartsOfWhatItReadAhead) {
  Ends ends;
  ends.say(100);
  EXPECT_EQ(ends.read(24), 24u);
  EXPECT_TRUE(ends.pipe->can_read());
  EXPECT_EQ(ends.read(200), 76u);
  EXPECT_FALSE(ends.pipe->can_read());
  EXPECT_EQ(ends.pipe->bytes_read(), 100u);
}

TEST(TcpPipe, DoesNotAskAnEmptySocketAgainBeforeThePollerSaysSo) {
  Ends ends;
  EXPECT_EQ(ends.read(10), 0u);
  EXPECT_FALSE(ends.pipe->can_read());
  ends.say(5);
  EXPECT_EQ(ends.read(10), 0u);  // not told yet
  ends.poll_once();
  EXPECT_EQ(ends.read(10), 5u);
}

TEST(TcpPipe, StopsWritingWhenTheSocketIsFullUntilThereIsRoom) {
  Ends ends;
  const auto bytes = test_bytes(8 << 20, 2);
  const std::array<std::span<const std::byte>, 2> parts = {std::span(bytes).first(10), std::span(bytes).subspan(10)};
  const size_t first = ends.pipe->write(parts);
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, bytes.size());
  EXPECT_FALSE(ends.pipe->can_write());
  EXPECT_EQ(ends.pipe->write(parts), 0u);
  std::vector<std::byte> into(bytes.size());
  size_t got = 0;
  while (got < first) got += ends.other->read_some(std::span(into).subspan(got)).value();
  EXPECT_TRUE(std::equal(into.begin(), into.begin() + static_cast<ptrdiff_t>(got), bytes.begin()));
  ends.poll_once();
  EXPECT_TRUE(ends.pipe->can_write());
}

TEST(TcpPipe, EndsAfterTheLastByte) {
  Ends ends;
  ends.say(10);
  ends.other.reset();
  ends.poll_once();
  EXPECT_FALSE(ends.pipe->ended());
  EXPECT_EQ(ends.read(4), 4u);
  EXPECT_FALSE(ends.pipe->ended());
  EXPECT_EQ(ends.read(20), 6u);
  EXPECT_EQ(ends.read(20), 0u);
  EXPECT_TRUE(ends.pipe->ended());
}

TEST(TcpPipe, EndsWhenTheProcessIsGoneThoughTheSocketIsOpen) {
  Ends ends;
  ends.say(10);
  ends.pipe->peer_gone();
  EXPECT_FALSE(ends.pipe->ended());
  EXPECT_EQ(ends.read(20), 10u);
  EXPECT_EQ(ends.read(20), 0u);
  EXPECT_TRUE(ends.pipe->ended());
}

TEST(TcpPipe, StillReadsWhatCameBeforeAWriteFailed) {
  Ends ends;
  ends.say(10);
  ends.other.reset();
  const auto bytes = test_bytes(100, 3);
  const std::span<const std::byte> part = bytes;
  EXPECT_EQ(ends.pipe->write({&part, 1}), 0u);
  EXPECT_EQ(ends.read(20), 10u);
  EXPECT_EQ(ends.read(20), 0u);
  EXPECT_TRUE(ends.pipe->ended());
}

TEST(TcpPipe, LetsThePeerReadItsLastWords) {
  Ends ends;
  ends.say(1000);  // unread here: closing must not throw away what is on its way to the other
  const auto bytes = test_bytes(50, 4);
  const std::span<const std::byte> part = bytes;
  ASSERT_EQ(ends.pipe->write({&part, 1}), 50u);
  ends.pipe.reset();
  std::vector<std::byte> into(100);
  EXPECT_EQ(ends.other->read_some(into).value(), 50u);
}

}  // namespace
}  // namespace halay::transport
