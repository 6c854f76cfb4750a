#include "region/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "region/doorbell.h"
#include "region/local_socket.h"

namespace halay::region {
namespace {

TEST(Segment, IsSeenByAllWhoMapIt) {
  for (Backing backing : {Backing::automatic, Backing::dev_shm}) {
    Segment made = Segment::create("halay-test", 8192, backing).value();
    Segment seen = Segment::map(UniqueFd(::dup(made.descriptor())), 8192).value();
    EXPECT_NE(made.data(), seen.data());
    EXPECT_EQ(seen.data()[100], std::byte{0});
    made.data()[100] = std::byte{7};
    EXPECT_EQ(seen.data()[100], std::byte{7});
  }
}

TEST(Segment, CannotBeShrunkUnderThoseWhoMappedIt) {
  Segment made = Segment::create("halay-test", 8192).value();
  EXPECT_NE(::ftruncate(made.descriptor(), 4096), 0);
}

TEST(Segment, RefusesAnotherSizeThanAnnounced) {
  Segment made = Segment::create("halay-test", 8192).value();
  const auto seen = Segment::map(UniqueFd(::dup(made.descriptor())), 4096);
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.status().text(), "shared memory: came with 8192 bytes, announced were 4096");
}

TEST(Segment, TooLargeIsAnErrorAndNoSignal) {
  EXPECT_EQ(Segment::create("halay-test", size_t{1} << 50).status().code(), Code::no_memory);
}

TEST(Segment, MadePrivateKeepsItsBytesAndSharesNoMore) {
  Segment made = Segment::create("halay-test", 8192).value();
  Segment seen = Segment::map(UniqueFd(::dup(made.descriptor())), 8192).value();
  made.data()[5] = std::byte{1};
  std::byte* const before = seen.data();
  ASSERT_TRUE(seen.make_private().ok());
  EXPECT_EQ(seen.data(), before);
  EXPECT_EQ(seen.data()[5], std::byte{1});
  made.data()[5] = std::byte{2};
  seen.data()[6] = std::byte{3};
  EXPECT_EQ(seen.data()[5], std::byte{1});
  EXPECT_EQ(made.data()[6], std::byte{0});
}

TEST(Segment, IsNotThereInAForkedChild) {
  Segment made = Segment::create("halay-test", 8192).value();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::msync(made.data(), 8192, MS_ASYNC) == 0 ? 1 : 0);  // ENOMEM where nothing is mapped
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

struct LocalPair {
  LocalListener listener = listen_local().value();
  UniqueFd first = connect_local(listener.name).value();
  UniqueFd second = accept_local(listener.socket.get());
};

TEST(LocalSocket, CarriesBytesAndDescriptorsTogether) {
  LocalPair pair;
  Segment made = Segment::create("halay-test", 4096).value();
  made.data()[0] = std::byte{42};
  const std::byte bytes[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  const int fds[1] = {made.descriptor()};
  ASSERT_EQ(send_local(pair.first.get(), bytes, fds), Passing::done);
  LocalMessage message;
  ASSERT_EQ(receive_local(pair.second.get(), 64, message), Passing::done);
  EXPECT_EQ(message.bytes.size(), 3u);
  ASSERT_EQ(message.descriptors.size(), 1u);
  Segment seen = Segment::map(std::move(message.descriptors[0]), 4096).value();
  EXPECT_EQ(seen.data()[0], std::byte{42});
}

TEST(LocalSocket, SaysWhenNothingIsThereAndWhenThePeerHasEnded) {
  LocalPair pair;
  LocalMessage message;
  EXPECT_EQ(receive_local(pair.second.get(), 64, message), Passing::would_block);
  const std::byte last[1] = {std::byte{9}};
  ASSERT_EQ(send_local(pair.first.get(), last, {}), Passing::done);
  pair.first.reset();
  EXPECT_EQ(receive_local(pair.second.get(), 64, message), Passing::done);
  EXPECT_EQ(receive_local(pair.second.get(), 64, message), Passing::ended);
}

TEST(LocalSocket, RefusesAMessageLargerThanAllowed) {
  LocalPair pair;
  const std::byte bytes[100] = {};
  ASSERT_EQ(send_local(pair.first.get(), bytes, {}), Passing::done);
  LocalMessage message;
  EXPECT_EQ(receive_local(pair.second.get(), 64, message), Passing::ended);
}

TEST(LocalSocket, SaysThatNobodyListens) { EXPECT_FALSE(connect_local("halay-nobody-is-here").ok()); }

TEST(LocalSocket, KnowsTheProcessAtTheOtherEnd) {
  LocalPair pair;
  EXPECT_EQ(peer_process(pair.second.get()), ::getpid());
}

TEST(WatchProcess, IsReadableOnceTheProcessHasEnded) {
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::_exit(::read(gate[0], &byte, 1) == 1 ? 0 : 1);
  }
  UniqueFd watch = watch_process(child);
  ASSERT_TRUE(watch);
  pollfd poll_one{watch.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll_one, 1, 0), 0);
  ASSERT_EQ(::write(gate[1], "x", 1), 1);
  EXPECT_EQ(::poll(&poll_one, 1, 10'000), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST(Doorbell, IsHeardThroughEveryCopyUntilItIsQuiet) {
  Doorbell bell = Doorbell::create().value();
  Doorbell copy = bell.copy().value();
  pollfd poll_one{bell.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll_one, 1, 0), 0);
  copy.ring();
  copy.ring();
  EXPECT_EQ(::poll(&poll_one, 1, 0), 1);
  bell.quiet();
  EXPECT_EQ(::poll(&poll_one, 1, 0), 0);
}

}  // namespace
}  // namespace halay::region
