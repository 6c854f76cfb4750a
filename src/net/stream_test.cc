#include "net/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/bytes.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/listener.h"
#include "net/poller.h"

namespace halay::net {
namespace {

// A name nobody else on this machine uses: several test programs may run at once.
std::string own_name(std::string_view what) { return text("unix:@halay-test-", ::getpid(), "-", what); }

Time soon() { return system_clock().now().plus_ms(10'000); }

struct Connected {
  std::unique_ptr<Stream> client, server;
};

Connected connect_to(Listener& listener, const Address& address) {
  Connected both;
  auto client = connect(address, soon());
  EXPECT_TRUE(client.ok()) << client.status().text();
  if (!client.ok()) return both;
  both.client = std::move(client).value();
  EXPECT_TRUE(wait_readable(listener.fd(), soon()));
  both.server = std::move(listener.accept()).value();
  return both;
}

void expect_bytes_pass(Stream& from, Stream& to) {
  const std::span<const std::byte> parts[] = {bytes_of("one "), bytes_of(""), bytes_of("two")};
  ASSERT_TRUE(write_all(from, parts, "write", soon()).ok());
  std::vector<std::byte> got(7);
  ASSERT_TRUE(read_all(to, got, "read", soon()).ok());
  EXPECT_EQ(text_of(got), "one two");
}

TEST(Stream, PassesGatheredBytesOverEachKindOfSocket) {
  for (const std::string& where : {std::string("127.0.0.1:0"), std::string("[::1]:0"), own_name("stream")}) {
    auto listener = Listener::open(Address::parse(where).value());
    if (!listener.ok() && where.starts_with('[')) continue;  // no IPv6 here
    ASSERT_TRUE(listener.ok()) << listener.status().text();
    EXPECT_EQ(std::move(listener.value().accept()).value(), nullptr) << "nobody waits";
    Connected both = connect_to(listener.value(), listener.value().address());
    ASSERT_TRUE(both.client && both.server) << where;
    expect_bytes_pass(*both.client, *both.server);
    expect_bytes_pass(*both.server, *both.client);
    EXPECT_NE(::fcntl(both.client->fd(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_NE(::fcntl(both.server->fd(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(Listener, OnAllAddressesTakesIpv4AndIpv6OnTheSamePort) {
  auto listener = Listener::open_all();
  ASSERT_TRUE(listener.ok()) << listener.status().text();
  EXPECT_NE(listener.value().port(), 0);
  const Address v4 = Address::parse("127.0.0.1:0").value().with_port(listener.value().port());
  Connected both = connect_to(listener.value(), v4);
  ASSERT_TRUE(both.client && both.server);
  EXPECT_EQ(both.server->peer().substr(0, 10), "127.0.0.1:") << "not ::ffff:127.0.0.1";
  expect_bytes_pass(*both.client, *both.server);
}

TEST(Listener, ATakenNameIsAnsweredWithTheAddress) {
  const Address name = Address::parse(own_name("taken")).value();
  auto first = Listener::open(name);
  ASSERT_TRUE(first.ok());
  auto second = Listener::open(name);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().text(), "bind to " + name.text() + ": Address already in use");
}

TEST(Stream, SaysZeroWhenFullAndGoesOnWhenRead) {
  StreamPair pair = std::move(stream_pair()).value();
  const std::vector<std::byte> block(1 << 16, std::byte{7});
  const std::span<const std::byte> part = block;
  size_t written = 0;
  while (true) {
    const auto some = pair.first->write_some({&part, 1});
    ASSERT_TRUE(some.ok());
    if (some.value() == 0) break;
    written += some.value();
  }
  EXPECT_GT(written, 0u);
  EXPECT_FALSE(wait_writable(pair.first->fd(), Time{})) << "nothing to wait for while it is full";
  std::vector<std::byte> got(written);
  ASSERT_TRUE(read_all(*pair.second, got, "read", soon()).ok());
  EXPECT_TRUE(wait_writable(pair.first->fd(), soon()));
}

TEST(Stream, TheEndIsSeenAfterTheLastByteAndWritingThenIsAnErrorNotASignal) {
  StreamPair pair = std::move(stream_pair()).value();
  const std::span<const std::byte> part = bytes_of("last");
  ASSERT_TRUE(pair.first->write_some({&part, 1}).ok());
  pair.first.reset();
  std::byte got[16];
  EXPECT_EQ(pair.second->read_some(got).value(), 4u);
  EXPECT_FALSE(pair.second->ended());
  EXPECT_EQ(pair.second->read_some(got).value(), 0u);
  EXPECT_TRUE(pair.second->ended());
  const auto write = pair.second->write_some({&part, 1});
  ASSERT_FALSE(write.ok());
  EXPECT_EQ(write.status().code(), Code::peer_lost);
  EXPECT_NE(write.status().text().find("write to pair"), std::string::npos) << write.status().text();
}

TEST(Stream, KnowsWhoIsAtTheOtherEnd) {
  StreamPair pair = std::move(stream_pair()).value();
  const auto who = peer_identity(*pair.first);
  ASSERT_TRUE(who.ok());
  EXPECT_EQ(who.value().pid, ::getpid());
  EXPECT_EQ(who.value().uid, ::getuid());
}

TEST(Connect, NamesTheAddressThatRefused) {
  auto listener = Listener::open(Address::parse("127.0.0.1:0").value());
  const Address closed = listener.value().address();
  {
    const Listener gone = std::move(listener).value();
  }
  const auto refused = connect(closed, soon());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(), "connect to " + closed.text() + ": Connection refused");
  const auto nobody = connect(Address::parse(own_name("nobody")).value(), soon());
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.status().text(), "connect to " + own_name("nobody") + ": Connection refused");
}

TEST(Connect, KeepsTheFirstAddressThatWorksAndListsAllThatDoNot) {
  auto listener = Listener::open(Address::parse("127.0.0.1:0").value());
  auto other = Listener::open(Address::parse("127.0.0.1:0").value());
  const Address good = listener.value().address(), closed = other.value().address();
  {
    const Listener gone = std::move(other).value();
  }
  const Address both[] = {closed, good};
  const auto stream = connect_first(both, soon());
  ASSERT_TRUE(stream.ok()) << stream.status().text();
  EXPECT_EQ(stream.value()->peer(), good.text());
  const auto none = connect_first({both, 1}, soon());
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.status().text().find(closed.text()), std::string::npos);
  EXPECT_EQ(connect_first({}, soon()).status().code(), Code::invalid_argument);
}

TEST(Connect, AReadThatNeverComesEndsAtItsDeadlineWithStageAndCount) {
  StreamPair pair = std::move(stream_pair()).value();
  const std::span<const std::byte> part = bytes_of("ab");
  ASSERT_TRUE(pair.first->write_some({&part, 1}).ok());
  std::byte got[5];
  const Status late = read_all(*pair.second, got, "read the hello", system_clock().now().plus_ms(20));
  EXPECT_EQ(late.code(), Code::timeout);
  EXPECT_EQ(late.text(), "read the hello (pair): timed out after 2 of 5 bytes");
}

TEST(Poller, TellsTagsAndOnlyWhatWasAskedFor) {
  StreamPair pair = std::move(stream_pair()).value();
  auto poller = Poller::make();
  ASSERT_TRUE(poller.ok());
  PollEvent events[4];
  ASSERT_TRUE(poller.value().add(pair.first->fd(), Interest::read, 42).ok());
  EXPECT_EQ(poller.value().wait(Time{}, events), 0u);
  const std::span<const std::byte> part = bytes_of("x");
  ASSERT_TRUE(pair.second->write_some({&part, 1}).ok());
  ASSERT_EQ(poller.value().wait(soon(), events), 1u);
  EXPECT_EQ(events[0].tag, 42u);
  EXPECT_TRUE(events[0].readable);
  EXPECT_FALSE(events[0].writable);
  ASSERT_TRUE(poller.value().change(pair.first->fd(), Interest::write, 43).ok());
  ASSERT_EQ(poller.value().wait(soon(), events), 1u);
  EXPECT_EQ(events[0].tag, 43u);
  EXPECT_TRUE(events[0].writable);
  poller.value().remove(pair.first->fd());
  EXPECT_EQ(poller.value().wait(Time{}, events), 0u);
}

TEST(Poller, APlainFileIsUnsupportedNotBroken) {
  auto poller = Poller::make();
  UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(poller.value().add(file.get(), Interest::read, 0).code(), Code::unsupported);
}

TEST(Poller, RoundsWaitsUpSoThatNobodySpins) {
  EXPECT_EQ(milliseconds_until(Time::never()), -1);
  EXPECT_EQ(milliseconds_until(Time{}), 0);
  EXPECT_GE(milliseconds_until(Time{system_clock().now().ns + 400'000'000}), 1);
  EXPECT_EQ(milliseconds_until(Time{INT64_MAX - 1}), INT32_MAX);
}

}  // namespace
}  // namespace halay::net
