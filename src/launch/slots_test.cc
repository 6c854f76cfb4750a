#include "launch/slots.h"

#include <gtest/gtest.h>

namespace halay::launch {
namespace {

// R63 of spec/users.md.
TEST(Hosts, R63GrammarIsStrict) {
  for (const char* wrong : {"host:2:7", "a:0", "a:-1", "a", "a:", ":2", "", "a:1,", "a:1,,b:1", "[::1]", "::1:2",
                            "[::1:2", "a b:1", "a:1x", "[host]:1", "a:99999999999"}) {
    const auto hosts = parse_hosts(wrong);
    ASSERT_FALSE(hosts.ok()) << wrong;
    EXPECT_NE(hosts.status().text().find("want name:slots"), std::string::npos) << hosts.status().text();
  }
  EXPECT_EQ(parse_hosts("[::1]:2").value(), (std::vector<Host>{{"::1", 2}}));
  EXPECT_EQ(parse_hosts("w-0.svc.ns.svc.cluster.local:1").value(),
            (std::vector<Host>{{"w-0.svc.ns.svc.cluster.local", 1}}));
  EXPECT_EQ(parse_hosts("a:1, 10.0.0.1:4").value(), (std::vector<Host>{{"a", 1}, {"10.0.0.1", 4}}));
}

TEST(Hosts, AHostfileMayHaveCommentsAndBlankLines) {
  const auto hosts = parse_hostfile("# all of them\na slots=2\n\n  b.c\tslots=4   # fast\n2001:db8::1 slots=1");
  ASSERT_TRUE(hosts.ok()) << hosts.status().text();
  EXPECT_EQ(hosts.value(), (std::vector<Host>{{"a", 2}, {"b.c", 4}, {"2001:db8::1", 1}}));
}

TEST(Hosts, AWrongLineOfAHostfileIsNumbered) {
  for (const char* wrong :
       {"a slots=1\nb", "a slots=1\nb slots=0", "a slots=1\nb slot=1", "a slots=1\nb 1", "a slots=1\n: slots=1"}) {
    const auto hosts = parse_hostfile(wrong);
    ASSERT_FALSE(hosts.ok()) << wrong;
    EXPECT_NE(hosts.status().text().find("line 2"), std::string::npos) << hosts.status().text();
  }
  EXPECT_FALSE(parse_hostfile("# nothing\n").ok());
}

// The example of Horovod's own rule.
TEST(Slots, AreFilledInOrderOfHosts) {
  const std::vector<Host> hosts{{"w0", 1}, {"w1", 2}};
  const auto slots = assign_slots(hosts, 3);
  ASSERT_TRUE(slots.ok());
  const std::vector<Slot> expected{{"w0", 0, 3, 0, 1, 0, 2}, {"w1", 1, 3, 0, 2, 1, 2}, {"w1", 2, 3, 1, 2, 0, 1}};
  EXPECT_EQ(slots.value(), expected);
}

TEST(Slots, ThatAreNotNeededStayFree) {
  const std::vector<Host> hosts{{"a", 4}, {"b", 4}};
  const auto slots = assign_slots(hosts, 2);
  ASSERT_TRUE(slots.ok());
  EXPECT_EQ(slots.value()[1], (Slot{"a", 1, 2, 1, 2, 0, 1}));
}

TEST(Slots, TooFewShowBothNumbers) {
  const std::vector<Host> hosts{{"a", 1}, {"b", 2}};
  EXPECT_EQ(assign_slots(hosts, 4).status().text(), "4 processes asked for, 3 slots on 2 hosts");
}

TEST(Slots, KnowThisMachineByAllItsNames) {
  EXPECT_TRUE(is_this_machine("localhost"));
  EXPECT_TRUE(is_this_machine(own_hostname()));
  EXPECT_TRUE(is_this_machine("127.0.0.1"));
  EXPECT_TRUE(is_this_machine("::1"));
  EXPECT_FALSE(is_this_machine("192.0.2.77"));
  EXPECT_FALSE(is_this_machine("surely-not-this-machine"));
}

}  // namespace
}  // namespace halay::launch
