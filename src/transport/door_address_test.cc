#include "transport/door_address.h"

#include <gtest/gtest.h>

#include <random>

namespace halay::transport {
namespace {

DoorAddress sample() {
  DoorAddress address;
  address.build_id = "0.1.0";
  address.transport = "auto";
  address.algorithms = "allreduce=ring";
  address.window_bytes = 1 << 20;
  address.heartbeat_ms = 15'000;
  address.machine = "a machine";
  address.process = 77;
  address.process_space = "pid:[1]";
  address.inproc_slot = 3;
  address.local_name = "halay-name";
  address.tcp_addresses = {"10.0.0.1:80", "[::1]:80"};
  return address;
}

TEST(DoorAddress, ReadsBackAsItWasWritten) {
  const DoorAddress in = sample();
  const DoorAddress out = decode_door_address(encode(in)).value();
  EXPECT_EQ(encode(out), encode(in));
  EXPECT_EQ(out.tcp_addresses, in.tcp_addresses);
  EXPECT_EQ(out.machine, in.machine);
  EXPECT_EQ(out.algorithms, in.algorithms);
}

TEST(DoorAddress, CutShortAnywhereIsRefused) {
  const auto bytes = encode(sample());
  for (size_t count = 0; count < bytes.size(); ++count) {
    EXPECT_FALSE(decode_door_address(std::span(bytes).first(count)).ok()) << count;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_door_address(longer).ok());
}

TEST(DoorAddress, RandomBytesAreRefusedOrReadAndNothingElse) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto good = encode(sample());
  for (int i = 0; i < 5000; ++i) {
    auto bytes = good;
    for (int change = 0; change < 3; ++change) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    (void)decode_door_address(bytes);
  }
}

std::string difference(void (*change)(DoorAddress&)) {
  DoorAddress other = sample();
  change(other);
  const std::vector<std::vector<std::byte>> world = {encode(sample()), encode(sample()), encode(other)};
  const auto decoded = decode_world(world);
  EXPECT_EQ(decoded.status().code(), Code::mismatch);
  return decoded.status().text();
}

TEST(DecodeWorld, NamesTheThingTheRanksAndBothValues) {
  EXPECT_EQ(difference([](DoorAddress& a) { a.wire_version = 9; }),
            "the ranks do not fit together: the wire version is 1 on rank 0 and 9 on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.build_id = "0.2.0"; }),
            "the ranks do not fit together: the build is '0.1.0' on rank 0 and '0.2.0' on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.little_endian = false; }),
            "the ranks do not fit together: the byte order is little-endian on rank 0 and big-endian on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.window_bytes = 5; }),
            "the ranks do not fit together: the window size in bytes is 1048576 on rank 0 and 5 on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.transport = "tcp"; }),
            "the ranks do not fit together: the transport is 'auto' on rank 0 and 'tcp' on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.algorithms = ""; }),
            "the ranks do not fit together: the choice of algorithms is 'allreduce=ring' on rank 0 and '' on rank 2");
  EXPECT_EQ(difference([](DoorAddress& a) { a.heartbeat_ms = 1; }),
            "the ranks do not fit together: the heartbeat in ms is 15000 on rank 0 and 1 on rank 2");
}

TEST(DecodeWorld, ReadsNothingBeyondAnotherWireVersion) {
  auto other = encode(sample());
  other[8] = std::byte{9};
  other.resize(20);  // its own fields are its own affair
  EXPECT_NE(decode_world(std::vector{encode(sample()), other}).status().text().find("1 on rank 0 and 9 on rank 1"),
            std::string::npos);
  EXPECT_NE(decode_world(std::vector{other, other}).status().text().find("has wire version 9, this one 1"),
            std::string::npos);
}

TEST(WorldDigest, DependsOnEveryAddressAndTheirOrder) {
  auto other = sample();
  other.process = 78;
  const std::vector<std::vector<std::byte>> a = {encode(sample()), encode(other)},
                                            b = {encode(other), encode(sample())};
  EXPECT_EQ(world_digest(a), world_digest(a));
  EXPECT_NE(world_digest(a), world_digest(b));
}

TEST(MachineId, IsTheSameTwiceAndNotEmpty) {
  EXPECT_EQ(machine_id(), machine_id());
  EXPECT_GT(machine_id().size(), 20u);
}

}  // namespace
}  // namespace halay::transport
