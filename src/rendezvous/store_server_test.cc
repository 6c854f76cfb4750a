#include "rendezvous/store_server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/listener.h"
#include "rendezvous/store_client.h"

namespace halay::rendezvous {
namespace {

Time in_ms(int64_t ms) { return system_clock().now().plus_ms(ms); }
Time soon() { return in_ms(20'000); }

struct Job {
  std::string key = make_job_key();
  std::unique_ptr<StoreServer> store = std::move(StoreServer::start(key)).value();
  StoreClient client() { return std::move(StoreClient::connect(store->address(), key, soon())).value(); }
};

TEST(Store, GivesWhatWasPut) {
  Job job;
  StoreClient first = job.client(), second = job.client();
  ASSERT_TRUE(first.put("name", bytes_of("halay"), soon()).ok());
  const auto value = second.get("name", soon());
  ASSERT_TRUE(value.ok()) << value.status().text();
  EXPECT_EQ(text_of(value.value()), "halay");
  ASSERT_TRUE(second.put("name", bytes_of("other"), soon()).ok());
  EXPECT_EQ(text_of(first.get("name", soon()).value()), "other");
}

TEST(Store, AGetWaitsForItsKeyAndForNoOther) {
  Job job;
  StoreClient reader = job.client(), writer = job.client();
  std::jthread late([&] {
    EXPECT_TRUE(writer.put("another", bytes_of("no"), soon()).ok());
    EXPECT_TRUE(writer.put("wanted", bytes_of("yes"), soon()).ok());
  });
  const auto value = reader.get("wanted", soon());
  ASSERT_TRUE(value.ok()) << value.status().text();
  EXPECT_EQ(text_of(value.value()), "yes");
}

TEST(Store, AGetThatNobodyAnswersNamesItsKey) {
  Job job;
  const auto nothing = job.client().get("never", in_ms(20));
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.status().code(), Code::timeout);
  EXPECT_EQ(nothing.status().text(), "nobody put 'never' into the launcher's store in time");
}

TEST(Store, ACollectGivesThoseThereAtItsDeadline) {
  Job job;
  StoreClient client = job.client();
  ASSERT_TRUE(client.put("p/0", bytes_of("a"), soon()).ok());
  const auto some = client.collect("p/", 2, in_ms(20));
  ASSERT_TRUE(some.ok()) << some.status().text();
  ASSERT_EQ(some.value().size(), 1u);
  ASSERT_TRUE(client.put("p/1", bytes_of("b"), soon()).ok());
  EXPECT_EQ(client.collect("p/", 2, soon()).value().size(), 2u);
}

TEST(Store, ALargeValuePassesWhole) {
  Job job;
  StoreClient client = job.client();
  const std::string large(kValueBytesMost, 'x');
  ASSERT_TRUE(client.put("large", bytes_of(large), soon()).ok());
  EXPECT_EQ(text_of(client.get("large", soon()).value()), large);
  const Status too_large = client.put("larger", bytes_of(large + "x"), soon());
  EXPECT_EQ(too_large.code(), Code::invalid_argument) << "answered before anything is sent";
}

TEST(Store, AClientWithTheWrongKeyIsDroppedWithOneLineAndHarmsNobody) {
  Job job;
  StoreClient good = job.client();
  testing::internal::CaptureStderr();
  const auto bad = StoreClient::connect(job.store->address(), make_job_key(), soon());
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), Code::invalid_argument);
  EXPECT_NE(bad.status().text().find("HALAY_JOB_KEY is not this job's"), std::string::npos) << bad.status().text();
  EXPECT_TRUE(good.put("still", bytes_of("here"), soon()).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("wrong key of the job"), std::string::npos) << log;
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST(Store, BytesThatAreNoProtocolAreDroppedBeforeTheyAreParsed) {
  Job job;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  testing::internal::CaptureStderr();
  for (int round = 0; round < 30; ++round) {
    auto stream = net::connect(net::Address::parse(job.store->address()).value(), soon());
    ASSERT_TRUE(stream.ok());
    std::vector<std::byte> noise(200);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
    const auto head = net::encode({2, round % 2 == 0 ? uint64_t{200} : uint64_t{40}});  // too long, or no proof
    const std::span<const std::byte> parts[] = {round % 3 == 0 ? std::span<const std::byte>() : head, noise};
    // The store may hang up in the middle of it.
    [[maybe_unused]] const Status written = net::write_all(*stream.value(), parts, "noise", soon());
    std::byte sink[4096];
    while (true) {
      ASSERT_TRUE(net::wait_readable(stream.value()->fd(), soon())) << "dropped, not kept waiting";
      const auto some = stream.value()->read_some(sink);
      if (!some.ok() || stream.value()->ended()) break;
    }
  }
  StoreClient good = job.client();
  EXPECT_TRUE(good.put("still", bytes_of("here"), soon()).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(log, '\n'), 30) << log;
}

TEST(Store, AProvedClientThatSpeaksNonsenseIsDroppedAlone) {
  Job job;
  StoreClient good = job.client();
  auto stream = net::connect(net::Address::parse(job.store->address()).value(), soon());
  ASSERT_TRUE(stream.ok());
  net::FrameReader reader(1024);
  const auto challenge = net::read_frame(*stream.value(), reader, "test", soon());
  ASSERT_TRUE(challenge.ok());
  const std::byte nonce[kNonceBytes] = {};
  ByteWriter proof;
  proof.bytes(nonce).bytes(prove(job.key, "client", challenge.value().payload, nonce));
  ASSERT_TRUE(net::write_frame(*stream.value(), 2, proof.view(), "test", soon()).ok());
  ASSERT_TRUE(net::read_frame(*stream.value(), reader, "test", soon()).ok());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(net::write_frame(*stream.value(), 77, bytes_of("?"), "test", soon()).ok());
  EXPECT_FALSE(net::read_frame(*stream.value(), reader, "test", soon()).ok());
  EXPECT_TRUE(good.put("still", bytes_of("here"), soon()).ok());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("request 77 is not known"), std::string::npos) << log;
}

TEST(Store, WhoTalksToAnImpostorLearnsSo) {
  // A server that lets everybody in but does not know the key.
  auto listener = net::Listener::open(net::Address::abstract(text("halay-test-", ::getpid(), "-impostor")).value());
  ASSERT_TRUE(listener.ok());
  std::jthread impostor([&] {
    net::wait_readable(listener.value().fd(), soon());
    auto stream = std::move(listener.value().accept()).value();
    const std::byte nonce[kNonceBytes] = {};
    EXPECT_TRUE(net::write_frame(*stream, 1, nonce, "test", soon()).ok());
    net::FrameReader reader(1024);
    EXPECT_TRUE(net::read_frame(*stream, reader, "test", soon()).ok());
    EXPECT_TRUE(net::write_frame(*stream, 3, Digest{}, "test", soon()).ok());
  });
  const auto client = StoreClient::connect(listener.value().address().text(), make_job_key(), soon());
  ASSERT_FALSE(client.ok());
  EXPECT_NE(client.status().text().find("does not know the key"), std::string::npos) << client.status().text();
}

TEST(Store, ItsEndIsSeenByWhoWaits) {
  Job job;
  StoreClient client = job.client();
  std::jthread end([&] { job.store.reset(); });
  const auto value = client.get("never", soon());
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.status().code(), Code::peer_lost) << value.status().text();
}

TEST(Store, TwoJobsAtOnceAndManyInARowNeverMeet) {
  Job one, two;
  EXPECT_NE(one.store->address(), two.store->address());
  EXPECT_FALSE(StoreClient::connect(one.store->address(), two.key, soon()).ok());
  for (int i = 0; i < 50; ++i) {
    Job again;
    EXPECT_TRUE(again.client().put("k", {}, soon()).ok());
  }
}

TEST(Store, NobodyThereIsSaidWithTheAddress) {
  const auto client = StoreClient::connect("unix:@halay-nobody-here", "key", soon());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.status().text(),
            "cannot reach the launcher's store: connect to unix:@halay-nobody-here: Connection refused");
}

}  // namespace
}  // namespace halay::rendezvous
