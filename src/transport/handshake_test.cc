#include "transport/handshake.h"

#include <gtest/gtest.h>

#include <random>

#include "base/bytes.h"

namespace halay::transport {
namespace {

HandshakeIdentity identity(int32_t me, std::string key = "key", std::string world = "world") {
  return {std::move(key), sha256(bytes_of(world)), me, 4};
}

struct Outcome {
  Status connector, acceptor;
};

Outcome shake(Handshake& connector, Handshake& acceptor) {
  Outcome outcome;
  while (outcome.connector.ok()) {
    const auto to_acceptor = connector.take_output();
    if (!to_acceptor.empty()) outcome.acceptor = acceptor.receive(to_acceptor);
    const auto to_connector = acceptor.take_output();
    if (to_connector.empty()) break;
    outcome.connector = connector.receive(to_connector);
  }
  return outcome;
}

TEST(Handshake, LetsBothSidesKnowEachOther) {
  Handshake connector = Handshake::connector(identity(2), 1), acceptor = Handshake::acceptor(identity(1));
  const Outcome outcome = shake(connector, acceptor);
  EXPECT_TRUE(outcome.connector.ok() && outcome.acceptor.ok());
  EXPECT_TRUE(connector.complete() && acceptor.complete());
  EXPECT_EQ(acceptor.peer(), 2);
  EXPECT_EQ(connector.peer(), 1);
}

TEST(Handshake, WorksWithoutAKey) {
  Handshake connector = Handshake::connector(identity(2, ""), 1), acceptor = Handshake::acceptor(identity(1, ""));
  EXPECT_TRUE(shake(connector, acceptor).acceptor.ok());
  EXPECT_TRUE(connector.complete());
}

TEST(Handshake, RefusesAnotherKeyAndSaysSoOnBothSides) {
  Handshake connector = Handshake::connector(identity(2, "mine"), 1),
            acceptor = Handshake::acceptor(identity(1, "yours"));
  const Outcome outcome = shake(connector, acceptor);
  EXPECT_EQ(outcome.connector.text(), "rank 1 refused: its job key is not this rank's");
  EXPECT_EQ(outcome.acceptor.text(), "a connection with another job key was refused");
  EXPECT_FALSE(connector.complete() || acceptor.complete());
}

TEST(Handshake, RefusesAnotherWorldAndAnotherRank) {
  Handshake a = Handshake::connector(identity(2, "key", "old"), 1), b = Handshake::acceptor(identity(1));
  EXPECT_EQ(shake(a, b).connector.text(), "rank 1 refused: it builds another world");
  Handshake c = Handshake::connector(identity(3), 2), d = Handshake::acceptor(identity(1));
  EXPECT_EQ(shake(c, d).acceptor.text(), "a connection of rank 3 to rank 2 was refused");
  Handshake e = Handshake::connector(identity(0), 1), f = Handshake::acceptor(identity(1));
  EXPECT_FALSE(shake(e, f).acceptor.ok());
}

TEST(Handshake, DoesNotTrustAnAcceptorThatOnlyEchoes) {
  Handshake connector = Handshake::connector(identity(2), 1);
  const auto hello = connector.take_output();
  ASSERT_TRUE(connector.receive(hello).ok());  // its own nonce as the challenge
  const auto proof = connector.take_output();
  ByteWriter verdict;
  verdict.number(uint32_t{0}).bytes(std::span(proof).last(32));
  EXPECT_EQ(connector.receive(verdict.view()).text(), "what answers for rank 1 did not prove the job key");
}

TEST(Handshake, ProofsAreOfNoUseASecondTime) {
  Handshake connector = Handshake::connector(identity(2), 1), acceptor = Handshake::acceptor(identity(1));
  const auto hello = connector.take_output();
  ASSERT_TRUE(acceptor.receive(hello).ok());
  ASSERT_TRUE(connector.receive(acceptor.take_output()).ok());
  const auto proof = connector.take_output();
  Handshake later = Handshake::acceptor(identity(1));
  ASSERT_TRUE(later.receive(hello).ok());
  EXPECT_FALSE(later.receive(proof).ok());
}

TEST(Handshake, AStrangersBytesAreRefusedAtOnce) {
  Handshake acceptor = Handshake::acceptor(identity(1));
  const std::string http = "GET / HTTP/1.1\r\nHost: x\r\n";
  ASSERT_GE(http.size(), acceptor.awaited_bytes());
  EXPECT_EQ(acceptor.receive(bytes_of(http).first(acceptor.awaited_bytes())).text(),
            "a connection that is not of halay");
  EXPECT_EQ(acceptor.awaited_bytes(), 0u);
  EXPECT_TRUE(acceptor.take_output().empty());
}

}  // namespace
}  // namespace halay::transport
