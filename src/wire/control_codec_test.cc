#include "wire/control_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace halay::wire {
namespace {

std::string hex(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (!out.empty()) out += ' ';
    out += kDigits[static_cast<unsigned>(byte) >> 4];
    out += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return out;
}

template <typename Message>
std::vector<std::byte> bytes_of(const Message& message, const NameTable& names) {
  std::vector<std::byte> out;
  encode(message, names, out);
  return out;
}

Request request_of(NameTable& names, std::string_view name, Shape shape) {
  Request request;
  request.name = names.intern(name);
  request.dtype = DType::float32;
  request.shape = shape;
  return request;
}

Announcement small_announcement(NameTable& names) {
  Announcement message;
  message.applied = 300;
  message.urgent = true;
  message.repeats = {{7, 2}};
  message.requests.push_back(request_of(names, "g/w", Shape{2, 3}));
  return message;
}

Announcement full_announcement(NameTable& names) {
  Announcement message = small_announcement(names);
  message.joined = true;
  Request& scaled = message.requests.emplace_back(request_of(names, "s", Shape{}));
  scaled.reduce_op = ReduceOp::average;
  scaled.divisor = Divisor::active;
  scaled.prescale = 0.5;
  scaled.postscale = -2;
  scaled.group = names.intern("both");
  scaled.group_size = 2;
  Request& parts = message.requests.emplace_back(request_of(names, "parts", Shape{5, 4}));
  parts.kind = OpKind::alltoall;
  parts.splits = {2, 0, 3};
  Request& from = message.requests.emplace_back(request_of(names, "from", Shape{1000}));
  from.kind = OpKind::broadcast;
  from.device = DeviceType::cuda;
  from.root = 2;
  return message;
}

ListMessage full_list(NameTable& names) {
  ListMessage message;
  message.number = 5;
  message.fusion_bytes = 128u << 20;
  message.joined = {1};
  message.items = {{ListItemKind::evict, 3},
                   {ListItemKind::fresh, 0},
                   {ListItemKind::repeat, 200},
                   {ListItemKind::failed, 1},
                   {ListItemKind::join, 2}};
  FreshDecision gathered;
  gathered.decision.name = names.intern("g");
  gathered.decision.kind = OpKind::allgather;
  gathered.decision.shape = Shape{0, 4};
  gathered.decision.rows = {1, 0, 2};
  gathered.decision.cache_id = 9;
  FreshDecision failed;
  failed.decision.name = names.intern("x");
  failed.decision.status = Status::stalled("late");
  failed.asked = {0, 2};
  message.fresh.push_back(std::move(gathered));
  message.fresh.push_back(std::move(failed));
  return message;
}

// The layout is a promise between processes: whoever changes these bytes also raises kControlVersion.
TEST(ControlCodec, KeepsItsBytes) {
  NameTable names;
  EXPECT_EQ(hex(bytes_of(small_announcement(names), names)),
            "01 01 01 ac 02 "                           // version, announcement, urgent, applied 300
            "01 07 02 "                                 // one repeat: id 7, generation 2
            "01 03 67 2f 77 00 07 01 00 00 02 02 03");  // one request: g/w allreduce float32 sum cpu, no flags, (2, 3)
  EXPECT_EQ(
      hex(bytes_of(full_list(names), names)),
      "01 02 05 80 80 80 40 "                             // version, list, number 5, fusion bytes
      "01 01 "                                            // one member has joined: 1
      "05 03 03 "                                         // five items; evict 3
      "01 01 67 01 07 01 00 10 02 00 04 03 01 00 02 09 "  // fresh: g allgather float32, numbers; (0, 4); rows; id 9
      "00 c8 01 "                                         // repeat 200
      "02 01 78 00 05 00 04 6c 61 74 65 02 00 02 "        // failed: x allreduce stalled "late", asked by 0 and 2
      "04 02");                                           // join, last: 2
}

TEST(ControlCodec, GivesBackAnAnnouncement) {
  NameTable sender, receiver;
  receiver.intern("so that the numbers differ");
  const Announcement sent = full_announcement(sender);
  Announcement got;
  ASSERT_TRUE(decode(bytes_of(sent, sender), 3, receiver, got).ok());
  EXPECT_EQ(got.applied, sent.applied);
  EXPECT_TRUE(got.urgent);
  EXPECT_TRUE(got.joined);
  EXPECT_EQ(got.repeats, sent.repeats);
  ASSERT_EQ(got.requests.size(), 4u);
  EXPECT_EQ(receiver.text(got.requests[1].group), "both");
  EXPECT_EQ(got.requests[1].group_size, 2u);
  EXPECT_EQ(got.requests[1].prescale, 0.5);
  EXPECT_EQ(got.requests[1].postscale, -2);
  EXPECT_EQ(got.requests[1].divisor, Divisor::active);
  EXPECT_EQ(got.requests[1].reduce_op, ReduceOp::average);
  EXPECT_EQ(got.requests[2].splits, (std::vector<int64_t>{2, 0, 3}));
  EXPECT_EQ(got.requests[3].root, 2);
  EXPECT_EQ(got.requests[3].device, DeviceType::cuda);
  EXPECT_EQ(receiver.text(got.requests[3].name), "from");
  EXPECT_EQ(got.requests[3].shape, (Shape{1000}));
  EXPECT_EQ(bytes_of(got, receiver), bytes_of(sent, sender));
}

TEST(ControlCodec, GivesBackAList) {
  NameTable sender, receiver;
  const ListMessage sent = full_list(sender);
  ListMessage got;
  ASSERT_TRUE(decode(bytes_of(sent, sender), 3, receiver, got).ok());
  EXPECT_EQ(got.number, 5u);
  EXPECT_EQ(got.joined, sent.joined);
  EXPECT_EQ(got.items, sent.items);
  EXPECT_EQ(got.fresh[0].decision.rows, sent.fresh[0].decision.rows);
  EXPECT_EQ(got.fresh[1].decision.status.code(), Code::stalled);
  EXPECT_EQ(got.fresh[1].decision.status.text(), "late");
  EXPECT_EQ(got.fresh[1].asked, (std::vector<int>{0, 2}));
  EXPECT_EQ(bytes_of(got, receiver), bytes_of(sent, sender));
}

TEST(ControlCodec, RefusesEveryShorterMessage) {
  NameTable names;
  const auto announcement = bytes_of(full_announcement(names), names);
  const auto list = bytes_of(full_list(names), names);
  Announcement a;
  ListMessage l;
  for (size_t size = 0; size < announcement.size(); ++size) {
    EXPECT_EQ(decode(std::span(announcement).first(size), 3, names, a).code(), Code::internal) << size;
  }
  for (size_t size = 0; size < list.size(); ++size) {
    EXPECT_EQ(decode(std::span(list).first(size), 3, names, l).code(), Code::internal) << size;
  }
}

TEST(ControlCodec, RefusesWhatGoesOnAfterItsEnd) {
  NameTable names;
  auto bytes = bytes_of(full_list(names), names);
  bytes.push_back(std::byte{0});
  ListMessage list;
  const Status status = decode(bytes, 3, names, list);
  EXPECT_EQ(status.text(), "decision list of 48 bytes cannot be read: it goes on after its end (byte 47)");
}

TEST(ControlCodec, RefusesMembersOutsideTheSet) {
  NameTable names;
  Announcement announcement;
  ListMessage list;
  EXPECT_FALSE(decode(bytes_of(full_announcement(names), names), 2, names, announcement).ok());  // root 2
  EXPECT_FALSE(decode(bytes_of(full_list(names), names), 2, names, list).ok());                  // 3 rows
  EXPECT_FALSE(decode(bytes_of(full_list(names), names), 4, names, list).ok());
}

TEST(ControlCodec, RefusesACountThatTheMessageCannotHold) {
  NameTable names;
  // An announcement with 2^60 repeats: must be refused before anything is allocated.
  std::vector<std::byte> bytes;
  for (const int byte : {1, 1, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10})
    bytes.push_back(std::byte(byte));
  Announcement announcement;
  EXPECT_NE(decode(bytes, 2, names, announcement).text().find("a count is larger"), std::string::npos);
}

TEST(ControlCodec, RefusesAShapeWhoseBytesOverflow) {
  NameTable names;
  Announcement sent, got;
  sent.requests.push_back(request_of(names, "huge", Shape{int64_t{1} << 40, int64_t{1} << 30}));
  EXPECT_NE(decode(bytes_of(sent, names), 2, names, got).text().find("a shape is too large"), std::string::npos);
}

TEST(ControlCodec, RefusesAJoinAsATensorAndAListThatSkipsEverybody) {
  NameTable names;
  Announcement sent, got;
  sent.requests.push_back(request_of(names, "x", Shape{}));
  sent.requests[0].kind = OpKind::join;
  EXPECT_NE(decode(bytes_of(sent, names), 2, names, got).text().find("unknown kind"), std::string::npos);
  ListMessage list, got_list;
  list.joined = {0, 1};
  EXPECT_NE(decode(bytes_of(list, names), 2, names, got_list).text().find("skips every member"), std::string::npos);
}

TEST(ControlCodec, RefusesOtherVersionsAndKinds) {
  NameTable names;
  auto bytes = bytes_of(small_announcement(names), names);
  ListMessage list;
  EXPECT_NE(decode(bytes, 3, names, list).text().find("another kind"), std::string::npos);
  bytes[0] = std::byte{2};
  Announcement announcement;
  EXPECT_NE(decode(bytes, 3, names, announcement).text().find("unknown version"), std::string::npos);
}

TEST(ControlCodec, NeverReadsOutsideDamagedMessages) {
  NameTable names;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto announcement = bytes_of(full_announcement(names), names);
  const auto list = bytes_of(full_list(names), names);
  Announcement a;
  ListMessage l;
  size_t understood = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = round % 2 ? announcement : list;
    for (int hit = 0; hit < 3; ++hit) bytes[random() % bytes.size()] = std::byte(random());
    // Exactly as long as it says, so that a sanitizer sees a read beyond it.
    const std::vector<std::byte> exact(bytes.begin(),
                                       bytes.begin() + static_cast<ptrdiff_t>(random() % (bytes.size() + 1)));
    if (!(round % 2 ? decode(exact, 3, names, a) : decode(exact, 3, names, l)).ok()) continue;
    ++understood;
    const auto again = round % 2 ? bytes_of(a, names) : bytes_of(l, names);
    EXPECT_TRUE((round % 2 ? decode(again, 3, names, a) : decode(again, 3, names, l)).ok());
    EXPECT_EQ(again, round % 2 ? bytes_of(a, names) : bytes_of(l, names));
  }
  EXPECT_GT(understood, 0u);
}

}  // namespace
}  // namespace halay::wire
