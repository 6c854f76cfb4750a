#include "rendezvous/store_protocol.h"

#include <gtest/gtest.h>

#include <random>

#include "base/bytes.h"
#include "rendezvous/store_table.h"

namespace halay::rendezvous {
namespace {

std::vector<std::byte> value_of(std::string_view text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

TEST(StoreProtocol, RequestsComeBackAsTheyWent) {
  const StoreRequest put{StoreKind::put, "a/b", value_of("value"), 0, 0};
  const StoreRequest get{StoreKind::get, "k", {}, 0, 1234};
  const StoreRequest collect{StoreKind::collect, "world/0/", {}, 17, UINT64_MAX};
  for (const StoreRequest& request : {put, get, collect}) {
    const auto back = parse_request(static_cast<uint32_t>(request.kind), encode(request));
    ASSERT_TRUE(back.ok()) << back.status().text();
    EXPECT_EQ(back.value().kind, request.kind);
    EXPECT_EQ(back.value().key, request.key);
    EXPECT_EQ(back.value().value, request.value);
    EXPECT_EQ(back.value().count, request.count);
    EXPECT_EQ(back.value().timeout_ms, request.timeout_ms);
  }
}

TEST(StoreProtocol, RepliesComeBackAsTheyWent) {
  const StoreReply pairs{StoreKind::pairs, true, {{"a", value_of("1")}, {"b", {}}}, {}};
  const auto back = parse_reply(static_cast<uint32_t>(pairs.kind), encode(pairs));
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_TRUE(back.value().complete);
  EXPECT_EQ(back.value().pairs, pairs.pairs);
  const StoreReply refused{StoreKind::refused, false, {}, "full"};
  EXPECT_EQ(parse_reply(static_cast<uint32_t>(refused.kind), encode(refused)).value().text, "full");
  EXPECT_TRUE(parse_reply(static_cast<uint32_t>(StoreKind::stored), {}).ok());
}

TEST(StoreProtocol, WhatIsCutShortOrTooLongIsRefused) {
  const StoreRequest put{StoreKind::put, "key", value_of("value"), 0, 0};
  std::vector<std::byte> whole = encode(put);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(parse_request(16, std::span(whole).first(length)).ok()) << length;
  }
  whole.push_back(std::byte{0});
  EXPECT_FALSE(parse_request(16, whole).ok());
  EXPECT_FALSE(parse_request(99, encode(put)).ok()) << "an unknown kind";
}

TEST(StoreProtocol, KeysAndValuesHaveLimits) {
  StoreRequest put{StoreKind::put, std::string(kKeyBytesMost, 'k'), std::vector<std::byte>(kValueBytesMost), 0, 0};
  EXPECT_TRUE(parse_request(16, encode(put)).ok());
  put.value.push_back(std::byte{0});
  EXPECT_FALSE(parse_request(16, encode(put)).ok());
  put.value.clear();
  put.key += 'k';
  EXPECT_FALSE(parse_request(16, encode(put)).ok());
  put.key.clear();
  EXPECT_FALSE(parse_request(16, encode(put)).ok());
}

TEST(StoreProtocol, RandomBytesNeverHarm) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 40);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 3);
    const auto request = parse_request(16 + random() % 4, bytes);
    EXPECT_TRUE(!request.ok() || encode(request.value()) == bytes) << "what is taken is taken whole";
    const auto reply = parse_reply(32 + random() % 4, bytes);
    EXPECT_TRUE(reply.ok() || reply.status().code() == Code::invalid_argument);
  }
}

TEST(StoreProtocol, AProofFitsOneKeyOneSideAndOneConversation) {
  const std::string key = make_job_key(), other = make_job_key();
  EXPECT_EQ(key.size(), 64u);
  EXPECT_NE(key, other);
  const auto a = value_of("aaaa"), b = value_of("bbbb");
  const Digest proof = prove(key, "client", a, b);
  EXPECT_EQ(proof, prove(key, "client", a, b));
  EXPECT_NE(proof, prove(other, "client", a, b));
  EXPECT_NE(proof, prove(key, "server", a, b));
  EXPECT_NE(proof, prove(key, "client", b, a));
}

TEST(StoreTable, KnowsNewKeysFromReplacedOnes) {
  StoreTable table;
  EXPECT_TRUE(table.put("a/1", value_of("x")).value());
  EXPECT_FALSE(table.put("a/1", value_of("y")).value());
  EXPECT_TRUE(table.put("a/2", {}).value());
  EXPECT_TRUE(table.put("b", {}).value());
  EXPECT_EQ(*table.find("a/1"), value_of("y"));
  EXPECT_EQ(table.find("a"), nullptr);
  EXPECT_EQ(table.count_with_prefix("a/"), 2u);
  EXPECT_EQ(table.with_prefix("a/")[1].key, "a/2");
  EXPECT_EQ(table.count_with_prefix(""), 3u);
}

TEST(StoreTable, IsFullAtItsLimitAndKeepsWhatItHas) {
  StoreTable table;
  const std::vector<std::byte> value(kStoreBytesMost / 4);
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(table.put(key, value).ok());
  const auto full = table.put("d", value);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.status().code(), Code::no_memory);
  EXPECT_TRUE(table.put("a", value).ok()) << "replacing needs no more room";
  ASSERT_TRUE(table.put("a", {}).ok());
  EXPECT_TRUE(table.put("d", value).ok()) << "room given back is room";
}

}  // namespace
}  // namespace halay::rendezvous
