#include "trace/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <random>
#include <thread>

#include "base/text.h"
#include "trace/folder_for_test.h"
#include "trace/json_for_test.h"

namespace halay::trace {
namespace {

using testing::HasSubstr;

// One operation of eight events.
void record_operation(Timeline& timeline, NameId name, int64_t ns) {
  timeline.negotiate_begin(name, OpKind::allreduce, {ns});
  timeline.rank_ready(name, 0, {ns + 1});
  timeline.negotiate_end(name, {ns + 2});
  timeline.operation_begin(name, OpKind::allreduce, {ns + 3});
  timeline.activity_begin(name, Activity::SHM_ALLREDUCE, {ns + 4});
  timeline.activity_end(name, {ns + 5});
  timeline.operation_end(name, DType::float32, {2, 3}, {ns + 6});
  timeline.list_decided(static_cast<uint64_t>(ns), {ns + 7});
}

class TimelineTest : public testing::Test {
 protected:
  std::optional<json::Value> trace() const { return json::parse(json::contents(path)); }

  const Folder folder;
  const std::string path = folder / "trace.json";
  NameTable names;
  Timeline timeline{names};
  TimelineOptions options{.start_at = {0}};
};

TEST_F(TimelineTest, WritesWhatHappenedBetweenStartAndStop) {
  const NameId a = names.intern("a"), b = names.intern("b");
  record_operation(timeline, a, 1000);  // before: only the recorder has it
  options.mark_cycles = true;
  ASSERT_TRUE(timeline.start(path, options).ok());
  EXPECT_TRUE(timeline.active());
  for (int i = 0; i < 10; ++i) record_operation(timeline, i % 2 ? a : b, 2000 + i * 10);
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_FALSE(timeline.active());
  record_operation(timeline, a, 9000);
  const auto out = trace();
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(json::count(*out, "name", "NEGOTIATE_ALLREDUCE"), 10u);
  EXPECT_EQ(json::count(*out, "name", "ALLREDUCE"), 10u);
  EXPECT_EQ(json::count(*out, "name", "SHM_ALLREDUCE"), 10u);
  EXPECT_EQ(json::count(*out, "name", "0"), 10u);
  EXPECT_EQ(json::count(*out, "ph", "E"), 30u);
  EXPECT_EQ(json::count(*out, "name", "CYCLE_START"), 10u);
  EXPECT_EQ(json::count(*out, "name", "process_name"), 3u);
  EXPECT_GT(out->items[0]["args"]["start_time_since_epoch_in_micros"].number, 1.6e15);
  EXPECT_EQ(timeline.dropped(), 0u);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST_F(TimelineTest, ShowsAnEventSoonWithoutAStop) {
  ASSERT_TRUE(timeline.start(path, options).ok());
  record_operation(timeline, names.intern("a"), 1000);
  // The writer has 50 ms; a hundredfold is a failure.
  const Time end = system_clock().now().plus_ms(5000);
  size_t seen = 0;
  while (seen == 0 && system_clock().now() < end) {
    const auto out = trace();
    ASSERT_TRUE(out.has_value());
    seen = json::count(*out, "name", "SHM_ALLREDUCE");
  }
  EXPECT_EQ(seen, 1u);
}

TEST_F(TimelineTest, IsJsonAtEveryMomentWhileItIsWritten) {
  options.flush_ms = 5;
  options.ring_events = 1 << 12;
  ASSERT_TRUE(timeline.start(path, options).ok());
  std::atomic<bool> done{false};
  std::thread recording([&] {
    for (int i = 0; i < 5'000; ++i) record_operation(timeline, names.intern(text("tensor ", i % 50)), i * 10);
    done = true;
  });
  size_t before = 0;
  while (!done) {
    auto out = trace();
    // A reader may be overtaken by two exchanges since it opened the file (TraceFile's test is strict about that).
    for (int again = 0; again < 20 && !out.has_value(); ++again) out = trace();
    ASSERT_TRUE(out.has_value());
    ASSERT_GE(out->items.size(), before);
    before = out->items.size();
  }
  recording.join();
  ASSERT_TRUE(timeline.stop().ok());
  const auto out = trace();
  ASSERT_TRUE(out.has_value());
  EXPECT_GT(out->items.size(), 100u);
}

TEST_F(TimelineTest, R54SaysWhyItCannotBeStarted) {
  const Status missing = timeline.start(folder / "none/x.json", options);
  EXPECT_EQ(missing.code(), Code::invalid_argument);
  EXPECT_EQ(missing.text(), "timeline " + folder / "none/x.json" + ": No such file or directory");
  EXPECT_EQ(timeline.start(folder / ".", options).code(), Code::invalid_argument);
  EXPECT_FALSE(timeline.active());
  ASSERT_TRUE(timeline.start(path, options).ok());
  const Status twice = timeline.start(folder / "other.json", options);
  EXPECT_EQ(twice.text(), "timeline " + folder / "other.json" + ": " + path + " is being written; stop that first");
  EXPECT_FALSE(std::filesystem::exists(folder / "other.json"));
  EXPECT_TRUE(timeline.stop().ok());
  EXPECT_TRUE(timeline.stop().ok());
}

TEST_F(TimelineTest, EscapesNames) {
  const std::string name = "a \"quoted\\\" name\nwith lines\x01 and \xff bytes";
  ASSERT_TRUE(timeline.start(path, options).ok());
  record_operation(timeline, names.intern(name), 1000);
  ASSERT_TRUE(timeline.stop().ok());
  const auto out = trace();
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(out->items[2]["args"]["name"].string, "a \"quoted\\\" name\nwith lines\x01 and ? bytes");
}

TEST_F(TimelineTest, DropsWhatDoesNotFitAndSaysHowMany) {
  options.ring_events = 128;
  options.flush_ms = 100'000;  // nothing is taken out before the ring is half full
  ASSERT_TRUE(timeline.start(path, options).ok());
  const NameId name = names.intern("a");
  while (timeline.dropped() < 50) record_operation(timeline, name, 1000);
  const uint64_t dropped = timeline.dropped();
  ASSERT_TRUE(timeline.stop().ok());
  const auto out = trace();
  ASSERT_TRUE(out.has_value());
  ASSERT_GE(json::count(*out, "name", "EVENTS_DROPPED"), 1u);
  double said = 0;
  for (const json::Value& event : out->items) {
    if (event["name"].string == "EVENTS_DROPPED") said = event["args"]["count"].number;
  }
  EXPECT_EQ(said, static_cast<double>(dropped));
}

TEST_F(TimelineTest, StopsGrowingAtItsCapAndStaysWhole) {
  options.max_bytes = 20'000;
  options.flush_ms = 1;
  ASSERT_TRUE(timeline.start(path, options).ok());
  for (int i = 0; i < 3000; ++i) record_operation(timeline, names.intern(text(i)), i * 10);
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_LE(std::filesystem::file_size(path), 20'000u);
  EXPECT_GT(std::filesystem::file_size(path), 15'000u);
  const auto out = trace();
  ASSERT_TRUE(out.has_value());
  EXPECT_EQ(json::count(*out, "name", "TIMELINE_FULL"), 1u);
  EXPECT_EQ(out->items.back()["name"].string, "EVENTS_LEFT_OUT");
  EXPECT_GT(out->items.back()["args"]["count"].number, 1000);
}

TEST_F(TimelineTest, StartsAndStopsFromOtherThreadsWhileEventsAreRecorded) {
  std::atomic<bool> done{false};
  std::thread recording([&] {
    const NameId name = names.intern("a");
    for (int64_t ns = 0; !done; ns += 10) record_operation(timeline, name, ns);
  });
  std::thread reading([&] {
    while (!done) {
      if (timeline.recent().empty() && timeline.active()) continue;
    }
  });
  std::atomic<int> started{0};
  const auto switching = [&](const std::string& file) {
    for (int i = 0; i < 50; ++i) {
      if (timeline.start(file, options).ok()) ++started;
      if (!timeline.stop().ok()) ADD_FAILURE() << "stop " << i;
    }
  };
  std::thread one([&] { switching(folder / "one.json"); });
  std::thread two([&] { switching(folder / "two.json"); });
  one.join();
  two.join();
  done = true;
  recording.join();
  reading.join();
  EXPECT_GE(started, 50);
  EXPECT_FALSE(timeline.active());
  for (const char* const file : {"one.json", "two.json"}) {
    if (std::filesystem::exists(folder / file)) {
      EXPECT_TRUE(json::parse(json::contents(folder / file)).has_value()) << file;
    }
  }
}

// What a child writes until it is killed; `said` gets a byte after each 200 operations.
[[noreturn]] void write_until_killed(const std::string& path, int said) {
  NameTable names;
  Timeline timeline(names);
  if (!timeline.start(path, {.flush_ms = 1, .start_at = {0}}).ok()) ::_exit(1);
  for (int64_t i = 0;; ++i) {
    record_operation(timeline, names.intern(text("tensor ", i % 100)), i * 10);
    if (i % 200 == 0 && ::write(said, "x", 1) != 1) ::_exit(1);
  }
}

TEST_F(TimelineTest, IsWholeAfterAKillAtAnyInstruction) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(path, ends[1]);
    ::close(ends[1]);
    char byte = 0;
    for (unsigned steps = 1 + random() % 20; steps > 0; --steps) ASSERT_EQ(::read(ends[0], &byte, 1), 1);
    for (uint32_t spins = random() % 100'000; spins > 0; --spins) std::atomic_signal_fence(std::memory_order_seq_cst);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::close(ends[0]);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    const std::string text = json::contents(path);
    ASSERT_TRUE(json::parse(text).has_value())
        << "round " << round << ": " << text.substr(text.size() > 100 ? text.size() - 100 : 0);
  }
  // The next start takes over what was left.
  ASSERT_TRUE(timeline.start(path, options).ok());
  ASSERT_TRUE(timeline.stop().ok());
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST_F(TimelineTest, RemembersTheLastEventsWithoutAnyFile) {
  EXPECT_EQ(timeline.recent(), "");
  const NameId name = names.intern("grad/w1");
  record_operation(timeline, name, 5'000'000'000);
  EXPECT_EQ(timeline.recent(),
            "5.000000 \"grad/w1\" negotiate allreduce\n"
            "5.000000 \"grad/w1\" rank 0 ready\n"
            "5.000000 \"grad/w1\" negotiated\n"
            "5.000000 \"grad/w1\" allreduce begins\n"
            "5.000000 \"grad/w1\" SHM_ALLREDUCE begins\n"
            "5.000000 \"grad/w1\" activity ends\n"
            "5.000000 \"grad/w1\" done, 6 elements of float32\n"
            "5.000000 list 5000000000 decided\n");
  EXPECT_EQ(timeline.dropped(), 0u);
}

}  // namespace
}  // namespace halay::trace
