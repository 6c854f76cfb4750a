#include "net/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>

#include "net/interfaces.h"

namespace halay::net {
namespace {

TEST(Address, TextComesBackAsItWent) {
  for (const char* given :
       {"10.0.0.1:8000", "127.0.0.1:0", "[::1]:65535", "[2001:db8::1]:1", "unix:@halay/a b", "unix:/tmp/x"}) {
    const auto address = Address::parse(given);
    ASSERT_TRUE(address.ok()) << given << ": " << address.status().text();
    EXPECT_EQ(address.value().text(), given);
  }
}

TEST(Address, WhatIsNoAddressIsShownWithWhatIs) {
  const std::string too_long = "unix:@" + std::string(108, 'x');
  for (const std::string& given :
       {std::string(""), std::string("10.0.0.1"), std::string("10.0.0.1:70000"), std::string("10.0.0.1:x"),
        std::string("host:80"), std::string("::1:80"), std::string("[::1]"), std::string("[::1"), std::string("unix:"),
        std::string("unix:@"), too_long, std::string("1.2.3:4")}) {
    const auto address = Address::parse(given);
    ASSERT_FALSE(address.ok()) << given;
    EXPECT_EQ(address.status().code(), Code::invalid_argument);
    EXPECT_NE(address.status().text().find("'" + given + "'"), std::string::npos) << address.status().text();
  }
}

TEST(Address, Ipv4InsideIpv6IsShownAsIpv4) {
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(99);
  const unsigned char bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
  std::memcpy(&mapped.sin6_addr, bytes, 16);
  const auto address = Address::from_system(reinterpret_cast<sockaddr*>(&mapped), sizeof mapped);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address.value().text(), "10.1.2.3:99");
}

TEST(Address, KnowsWhatStaysOnThisMachine) {
  EXPECT_TRUE(Address::parse("127.9.9.9:1").value().is_loopback());
  EXPECT_TRUE(Address::parse("[::1]:1").value().is_loopback());
  EXPECT_TRUE(Address::parse("unix:@x").value().is_loopback());
  EXPECT_FALSE(Address::parse("10.0.0.1:1").value().is_loopback());
  EXPECT_TRUE(Address::parse("[fe80::1]:1").value().is_link_local());
  EXPECT_TRUE(Address::parse("169.254.0.1:1").value().is_link_local());
}

TEST(Interfaces, LoopbackIsThereAndComesLast) {
  const auto all = local_addresses();
  ASSERT_TRUE(all.ok()) << all.status().text();
  ASSERT_FALSE(all.value().empty());
  bool seen_loopback = false;
  for (const InterfaceAddress& at : all.value()) {
    EXPECT_TRUE(!seen_loopback || at.address.is_loopback()) << at.address.text();
    seen_loopback |= at.address.is_loopback();
    EXPECT_TRUE(is_local(at.address.with_port(80)));
  }
  EXPECT_TRUE(seen_loopback);
  EXPECT_FALSE(is_local(Address::parse("192.0.2.77:80").value()));
}

TEST(Interfaces, AFilterKeepsTheNamedOnesAndAnUnknownNameIsAnswered) {
  const auto only = local_addresses(" lo ,");
  ASSERT_TRUE(only.ok()) << only.status().text();
  for (const InterfaceAddress& at : only.value()) EXPECT_EQ(at.interface, "lo");
  const auto unknown = local_addresses("lo,eth77");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.status().text().find("eth77"), std::string::npos);
  EXPECT_NE(unknown.status().text().find("lo"), std::string::npos) << "names those there are";
}

}  // namespace
}  // namespace halay::net
