#include "transport/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/text.h"
#include "transport/frame.h"
#include "transport/world_for_test.h"

namespace halay::transport {
namespace {

// One end of a pair of byte queues that give and take at most `at_once` bytes a call and `room` in all.
struct Queues {
  std::deque<std::byte> bytes[2];
  bool closed[2] = {false, false};
  size_t at_once = 1 << 20, room = 1 << 20;
};

class QueuePipe final : public Pipe {
 public:
  QueuePipe(std::shared_ptr<Queues> queues, int side) : queues_(std::move(queues)), side_(side) {}
  ~QueuePipe() override { queues_->closed[side_] = true; }
  std::string_view transport() const override { return "test"; }
  size_t write(std::span<const std::span<const std::byte>> parts) override {
    auto& out = queues_->bytes[side_];
    size_t left = std::min(queues_->at_once, queues_->room - std::min(queues_->room, out.size())), done = 0;
    for (const auto& part : parts) {
      const size_t now = std::min(left, part.size());
      out.insert(out.end(), part.begin(), part.begin() + static_cast<ptrdiff_t>(now));
      left -= now, done += now;
    }
    return done;
  }
  size_t read(std::span<std::byte> into) override {
    auto& in = queues_->bytes[1 - side_];
    const size_t now = std::min({queues_->at_once, into.size(), in.size()});
    std::copy_n(in.begin(), now, into.begin());
    in.erase(in.begin(), in.begin() + static_cast<ptrdiff_t>(now));
    return now;
  }
  bool ended() override { return queues_->closed[1 - side_] && queues_->bytes[1 - side_].empty(); }
  void ring() override { ++rings; }
  int rings = 0;

 private:
  std::shared_ptr<Queues> queues_;
  const int side_;
};

struct Ends {
  std::shared_ptr<Queues> queues = std::make_shared<Queues>();
  std::unique_ptr<Channel> first = std::make_unique<Channel>(1, std::make_unique<QueuePipe>(queues, 0));
  std::unique_ptr<Channel> second = std::make_unique<Channel>(0, std::make_unique<QueuePipe>(queues, 1));
  KeepingSink first_sink, second_sink;

  void settle() {
    bool moved = true;
    while (moved) {
      moved = first && first->progress(first_sink);
      moved |= second && second->progress(second_sink);
    }
  }
  void raw(std::span<const std::byte> bytes) {
    queues->bytes[0].insert(queues->bytes[0].end(), bytes.begin(), bytes.end());
  }
};

TEST(Channel, BringsDataToWhereItIsAwaited) {
  Ends ends;
  const auto data = test_bytes(1000, 1);
  std::vector<std::byte> into(1000);
  Transfer sent, received;
  ends.second->post_recv(7, into, &received);
  ends.first->post_send(7, data, &sent);
  ends.settle();
  EXPECT_TRUE(sent.done);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(into, data);
  EXPECT_EQ(ends.second->counters().unexpected_bytes, 0u);
}

TEST(Channel, KeepsEarlyDataUntilItIsAskedFor) {
  Ends ends;
  const auto data = test_bytes(3 << 20, 2);
  std::vector<std::byte> into(data.size());
  Transfer sent, received;
  ends.first->post_send(7, data, &sent);
  ends.settle();
  EXPECT_TRUE(sent.done);
  ends.second->post_recv(7, into, &received);
  EXPECT_TRUE(received.done);
  EXPECT_EQ(into, data);
  EXPECT_EQ(ends.second->counters().unexpected_bytes, data.size());
}

TEST(Channel, GoesOnInPlaceWhenDataIsAskedForWhileItArrives) {
  Ends ends;
  ends.queues->room = 1000;
  const auto data = test_bytes(5000, 3);
  std::vector<std::byte> into(data.size());
  Transfer sent, received;
  ends.first->post_send(7, data, &sent);
  ends.second->progress(ends.second_sink);
  ends.second->post_recv(7, into, &received);
  EXPECT_FALSE(received.done);
  ends.settle();
  EXPECT_TRUE(received.done);
  EXPECT_EQ(into, data);
}

TEST(Channel, MatchesInOrderOfPostingInsideALaneAndNotAcrossLanes) {
  Ends ends;
  const auto a = test_bytes(10, 1), b = test_bytes(20, 2), c = test_bytes(30, 3);
  std::vector<std::byte> to_a(10), to_b(20), to_c(30);
  Transfer t[6];
  ends.first->post_send(1, a, &t[0]);
  ends.first->post_send(2, b, &t[1]);
  ends.first->post_send(1, c, &t[2]);
  ends.second->post_recv(2, to_b, &t[3]);
  ends.second->post_recv(1, to_a, &t[4]);
  ends.settle();
  ends.second->post_recv(1, to_c, &t[5]);
  for (const Transfer& each : t) EXPECT_TRUE(each.done);
  EXPECT_EQ(to_a, a);
  EXPECT_EQ(to_b, b);
  EXPECT_EQ(to_c, c);
}

TEST(Channel, CarriesEmptyTransfersToo) {
  Ends ends;
  Transfer sent[2], received[2];
  ends.second->post_recv(1, {}, &received[0]);
  ends.first->post_send(1, {}, &sent[0]);
  ends.first->post_send(1, {}, &sent[1]);
  ends.settle();
  ends.second->post_recv(1, {}, &received[1]);
  EXPECT_TRUE(sent[0].done && sent[1].done && received[0].done && received[1].done);
}

TEST(Channel, TakesFramesWhileThePipeIsFullAndKeepsTheirOrder) {
  Ends ends;
  ends.queues->room = 50;
  ends.queues->at_once = 7;
  for (int i = 0; i < 100; ++i) {
    std::string payload = text("frame ", i);
    ends.first->send_frame(FrameKind::control, 5, bytes_of(payload));
    payload.assign(payload.size(), 'x');  // the channel has its own copy
  }
  EXPECT_TRUE(ends.first->has_unsent());
  ends.settle();
  EXPECT_FALSE(ends.first->has_unsent());
  ASSERT_EQ(ends.second_sink.frames.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ends.second_sink.frames[static_cast<size_t>(i)].payload, text("frame ", i));
}

TEST(Channel, DeliversFramesBetweenDataOfOtherLanes) {
  Ends ends;
  ends.queues->room = 64;
  const auto data = test_bytes(500, 4);
  std::vector<std::byte> into(500);
  Transfer sent, received;
  ends.second->post_recv(1, into, &received);
  ends.first->send_frame(FrameKind::set_hello, 9, bytes_of("before"));
  ends.first->post_send(1, data, &sent);
  ends.first->send_frame(FrameKind::control, 9, bytes_of("after"));
  ends.settle();
  EXPECT_TRUE(received.done);
  ASSERT_EQ(ends.second_sink.frames.size(), 2u);
  EXPECT_EQ(ends.second_sink.frames[0].kind, FrameKind::set_hello);
  EXPECT_EQ(ends.second_sink.frames[1].payload, "after");
  EXPECT_EQ(ends.second_sink.frames[1].lane, 9u);
  EXPECT_EQ(ends.second_sink.frames[1].rank, 0);
}

TEST(Channel, FailsWhenTheSizesOfSendAndReceiveDiffer) {
  for (bool early : {false, true}) {
    Ends ends;
    const auto data = test_bytes(100, 1);
    std::vector<std::byte> into(80);
    Transfer sent, received;
    if (!early) ends.second->post_recv(3, into, &received);
    ends.first->post_send(3, data, &sent);
    ends.settle();
    if (early) ends.second->post_recv(3, into, &received);
    EXPECT_FALSE(received.done);
    EXPECT_EQ(ends.second->status().code(), Code::internal);
    EXPECT_EQ(ends.second->status().text(), "rank 0 sent 100 bytes on lane 3 where 80 were awaited");
  }
}

TEST(Channel, FailsWithWordsOnABrokenFrame) {
  Ends ends;
  auto header = encode({FrameKind::control, 0, 1, 0});
  header[2] = std::byte{77};
  ends.raw(header);
  ends.settle();
  EXPECT_EQ(ends.second->status().code(), Code::internal);
  EXPECT_EQ(ends.second->status().text(), "rank 0 sent a frame of unknown kind 77");
}

TEST(Channel, SeesALostOrDoubledFrame) {
  Ends ends;
  ends.raw(encode({FrameKind::control, 0, 1, 0}));
  ends.raw(encode({FrameKind::control, 0, 1, 0}));
  ends.settle();
  EXPECT_EQ(ends.second->status().text(), "rank 0 sent frame number 0 where 1 was awaited");
}

TEST(Channel, DoesNotReserveWhatABrokenLengthClaims) {
  Ends ends;
  ends.raw(encode({FrameKind::data, 0, 1, kMostDataBytes}));
  ends.raw(test_bytes(100, 1));
  ends.settle();  // would end the process if it tried
  EXPECT_TRUE(ends.second->status().ok());
}

TEST(Channel, DeliversWhatCameBeforeTheEndAndThenSaysWhoDied) {
  Ends ends;
  ends.first->send_frame(FrameKind::control, 1, bytes_of("last words"));
  ends.first.reset();
  ends.settle();
  ASSERT_EQ(ends.second_sink.frames.size(), 1u);
  EXPECT_EQ(ends.second_sink.frames[0].payload, "last words");
  EXPECT_EQ(ends.second->status().code(), Code::peer_lost);
  EXPECT_EQ(ends.second->status().culprit(), 0);
  EXPECT_EQ(ends.second->status().text(), "rank 0 died: its connection closed without a goodbye");
}

TEST(Channel, TellsAGoodbyeAnAbortAndACutFrameFromADeath) {
  const auto end_after = [](auto last) {
    Ends ends;
    last(ends);
    ends.first.reset();
    ends.settle();
    EXPECT_EQ(ends.second->status().code(), Code::peer_lost);
    return ends.second->status().text();
  };
  EXPECT_EQ(end_after([](Ends& e) { e.first->send_frame(FrameKind::goodbye, 0, {}); }),
            "rank 0 has ended, and said goodbye before");
  EXPECT_EQ(end_after([](Ends& e) { e.first->send_frame(FrameKind::abort, 0, {}); }),
            "rank 0 ended after it aborted the world");
  EXPECT_EQ(end_after([](Ends& e) {
              const auto header = encode({FrameKind::control, 0, 0, 9});
              e.raw(std::span(header).first(10));
            }),
            "rank 0 died: its connection closed in the middle of a frame");
}

TEST(Channel, ForgetsACancelledLaneAndGoesOnWithTheOthers) {
  Ends ends;
  ends.queues->room = 100;
  const auto gone = test_bytes(1000, 1), kept = test_bytes(50, 2);
  std::vector<std::byte> into_gone(1000, std::byte{0}), into_kept(50);
  Transfer t[4];
  ends.second->post_recv(1, into_gone, &t[0]);
  ends.first->post_send(1, gone, &t[1]);
  ends.first->post_send(2, kept, &t[2]);
  ends.second->progress(ends.second_sink);
  ends.first->cancel_lane(1);  // half-way: the rest still has to go, from a copy
  ends.second->cancel_lane(1);
  const auto before = into_gone;
  ends.second->post_recv(2, into_kept, &t[3]);
  ends.settle();
  EXPECT_EQ(into_gone, before);
  EXPECT_FALSE(t[0].done);
  EXPECT_TRUE(t[3].done);
  EXPECT_EQ(into_kept, kept);
  EXPECT_TRUE(ends.second->status().ok());
}

TEST(Channel, DropsWhatWasCancelledBeforeItBegan) {
  Ends ends;
  ends.queues->room = 0;
  const auto data = test_bytes(1000, 1);
  Transfer first, second;
  ends.first->post_send(3, data, &first);
  ends.first->post_send(1, data, &second);
  ends.first->cancel_lane(1);
  ends.queues->room = 1 << 20;
  ends.first->send_frame(FrameKind::control, 4, bytes_of("next"));
  ends.settle();
  EXPECT_TRUE(ends.second->status().ok());
  EXPECT_TRUE(first.done);
  EXPECT_FALSE(second.done);
  ASSERT_EQ(ends.second_sink.frames.size(), 1u);
}

}  // namespace
}  // namespace halay::transport
