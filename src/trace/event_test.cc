// What holds events: the packing, the ring to the writer, the flight recorder.
#include "trace/event.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <thread>
#include <vector>

#include "trace/event_ring.h"
#include "trace/recorder.h"

namespace halay::trace {
namespace {

Event event(int64_t number) {
  return {.at = {number}, .name = NameId{7}, .kind = EventKind::rank_ready, .value = number * 3};
}

TEST(Event, ComesOutOfASlotAsItWentIn) {
  const Event in = {.at = {-5},
                    .name = NameId{0xfedcba98},
                    .kind = EventKind::list_decided,
                    .detail = 200,
                    .dim_count = 32,
                    .value = INT64_MIN};
  const Event out = unpack(pack(in));
  EXPECT_EQ(out.at, in.at);
  EXPECT_EQ(out.name, in.name);
  EXPECT_EQ(out.kind, in.kind);
  EXPECT_EQ(out.detail, in.detail);
  EXPECT_EQ(out.dim_count, in.dim_count);
  EXPECT_EQ(out.value, in.value);
}

TEST(EventRing, RefusesWhatDoesNotFitAndKeepsWhatItHas) {
  EventRing ring(128);
  Event out;
  std::array<int64_t, 255> dims;
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.pop(out, dims));
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(ring.half_full(), i > 63) << i;
    ASSERT_TRUE(ring.push(event(i), {}));
  }
  EXPECT_FALSE(ring.push(event(128), {}));
  ASSERT_TRUE(ring.pop(out, dims));
  EXPECT_EQ(out.value, 0);
  Event with_dims = event(200);
  with_dims.dim_count = 1;
  const int64_t one[] = {9};
  EXPECT_FALSE(ring.push(with_dims, one));  // takes two slots
  ASSERT_TRUE(ring.push(event(128), {}));
  for (int i = 1; i <= 128; ++i) {
    ASSERT_TRUE(ring.pop(out, dims));
    EXPECT_EQ(out.value, i * 3);
  }
  EXPECT_FALSE(ring.pop(out, dims));
}

TEST(EventRing, CarriesEveryEventInOrderBetweenTwoThreads) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr int64_t kEvents = 100'000;
  EventRing ring(256);
  std::thread producer([&] {
    std::mt19937 random(seed);
    std::array<int64_t, 32> dims;
    for (int64_t i = 0; i < kEvents; ++i) {
      Event next = event(i);
      next.dim_count = static_cast<uint8_t>(random() % 33);
      for (size_t d = 0; d < next.dim_count; ++d) dims[d] = i + static_cast<int64_t>(d);
      while (!ring.push(next, std::span(dims).first(next.dim_count))) std::this_thread::yield();
    }
  });
  std::array<int64_t, 255> dims;
  for (int64_t i = 0; i < kEvents; ++i) {
    Event out;
    while (!ring.pop(out, dims)) std::this_thread::yield();
    if (out.value != i * 3) ADD_FAILURE() << "event " << i << " has value " << out.value;
    for (size_t d = 0; d < out.dim_count; ++d) {
      if (dims[d] != i + static_cast<int64_t>(d)) ADD_FAILURE() << "event " << i << " dim " << d << " is " << dims[d];
    }
  }
  producer.join();
  EXPECT_TRUE(ring.empty());
}

TEST(Recorder, KeepsTheLastEventsInOrder) {
  Recorder recorder;
  EXPECT_TRUE(recorder.last().empty());
  recorder.record(event(1));
  ASSERT_EQ(recorder.last().size(), 1u);
  for (int64_t i = 2; i <= 10'000; ++i) recorder.record(event(i));
  const std::vector<Event> last = recorder.last();
  ASSERT_EQ(last.size(), Recorder::kEvents);
  for (size_t i = 0; i < last.size(); ++i)
    EXPECT_EQ(last[i].value, 3 * (10'000 - static_cast<int64_t>(last.size() - 1 - i)));
}

TEST(Recorder, ShowsOnlyWholeEventsWhileItRecords) {
  Recorder recorder;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int64_t i = 1; i < 300'000; ++i) recorder.record(event(i));
    done = true;
  });
  size_t seen = 0;
  do {
    int64_t before = 0;
    for (const Event& e : recorder.last()) {
      if (e.value != e.at.ns * 3 || e.at.ns <= before) ADD_FAILURE() << "torn at " << e.at.ns << " value " << e.value;
      before = e.at.ns;
      ++seen;
    }
  } while (!done);
  writer.join();
  EXPECT_GE(seen + recorder.last().size(), Recorder::kEvents);
}

}  // namespace
}  // namespace halay::trace
