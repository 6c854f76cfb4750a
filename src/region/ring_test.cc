#include "region/ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace halay::region {
namespace {

class Ring {
 public:
  explicit Ring(size_t capacity)
      : bytes_(RingMemory::bytes_for(capacity) + kLineBytes),
        memory_(aligned(bytes_.data())),
        writer(memory_, capacity),
        reader(memory_, capacity) {}

  size_t write(std::vector<std::span<const std::byte>> parts) { return writer.write(parts); }

 private:
  static std::byte* aligned(std::byte* at) {
    return at + (kLineBytes - reinterpret_cast<uintptr_t>(at) % kLineBytes) % kLineBytes;
  }
  std::vector<std::byte> bytes_;
  std::byte* memory_;

 public:
  RingWriter writer;
  RingReader reader;
  std::byte* memory() { return memory_; }
};

std::vector<std::byte> pattern(size_t count, unsigned seed) {
  std::vector<std::byte> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>((i * 31 + seed) & 0xff);
  return out;
}

TEST(Ring, GivesNothingWhenNothingWasWritten) {
  Ring ring(1024);
  std::vector<std::byte> out(8);
  EXPECT_TRUE(ring.reader.empty());
  EXPECT_EQ(ring.reader.read(out), 0u);
}

TEST(Ring, HandsASmallWriteOverInOneCell) {
  Ring ring(1024);
  const auto a = pattern(24, 1), b = pattern(20, 2);
  EXPECT_EQ(ring.write({a, b}), 44u);
  EXPECT_FALSE(ring.reader.empty());
  std::vector<std::byte> out(64);
  EXPECT_EQ(ring.reader.read(std::span(out).first(24)), 24u);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), out.begin()));
  EXPECT_EQ(ring.reader.read(out), 20u);
  EXPECT_TRUE(std::equal(b.begin(), b.end(), out.begin()));
  EXPECT_TRUE(ring.reader.empty());
}

TEST(Ring, TakesAPrefixWhenItIsFullAndGoesOnWhenSomethingIsTaken) {
  Ring ring(1024);
  const auto data = pattern(5000, 3);
  const size_t first = ring.write({data});
  EXPECT_EQ(first, 1024u);
  EXPECT_FALSE(ring.writer.has_room());
  EXPECT_EQ(ring.write({std::span(data).subspan(first)}), 0u);
  std::vector<std::byte> out(5000);
  size_t got = ring.reader.read(std::span(out).first(300));
  EXPECT_EQ(got, 300u);
  EXPECT_TRUE(ring.writer.has_room());
  size_t sent = first;
  while (got < data.size()) {
    sent += ring.write({std::span(data).subspan(sent)});
    got += ring.reader.read(std::span(out).subspan(got));
  }
  EXPECT_EQ(out, data);
}

TEST(Ring, RunsOutOfCellsBeforeBytes) {
  Ring ring(1 << 16);
  const auto data = pattern(8, 4);
  size_t cells = 0;
  while (ring.write({data}) > 0) ++cells;
  EXPECT_EQ(cells, RingMemory::kCellCount);
  EXPECT_FALSE(ring.writer.has_room());
}

TEST(Ring, StopsAtATagThatMakesNoSense) {
  Ring ring(1024);
  RingMemory(ring.memory(), 1024).cell(0).tag.store(RingMemory::tag_of(0, 200));
  std::vector<std::byte> out(8);
  EXPECT_EQ(ring.reader.read(out), 0u);
  EXPECT_TRUE(ring.reader.broken());
}

TEST(Ring, CarriesARandomStreamBetweenTwoThreadsUnchanged) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Ring ring(1 << 12);
  const size_t total = 2'000'000;
  std::thread writer([&] {
    std::mt19937 random(seed);
    std::vector<std::byte> source(9000);
    for (size_t at = 0; at < total;) {
      const size_t a = std::min<size_t>(random() % 40, total - at),
                   b = std::min<size_t>(random() % 8000, total - at - a);
      for (size_t i = 0; i < a + b; ++i) source[i] = static_cast<std::byte>((at + i) % 251);
      for (size_t sent = 0; sent < a + b;) {
        const auto rest = std::span<const std::byte>(source).first(a + b).subspan(sent);
        const size_t head = sent < a ? a - sent : 0;
        const std::array<std::span<const std::byte>, 2> parts = {rest.first(head), rest.subspan(head)};
        const size_t now = ring.writer.write(parts);
        if (now == 0) std::this_thread::yield();
        sent += now;
      }
      at += a + b;
    }
  });
  std::mt19937 random(seed + 1);
  std::vector<std::byte> out(9000);
  size_t wrong = 0;
  for (size_t at = 0; at < total;) {
    const size_t got = ring.reader.read(std::span(out).first(1 + random() % 9000));
    for (size_t i = 0; i < got; ++i) wrong += out[i] != static_cast<std::byte>((at + i) % 251);
    if (got == 0) std::this_thread::yield();
    at += got;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(ring.reader.empty());
}

}  // namespace
}  // namespace halay::region
