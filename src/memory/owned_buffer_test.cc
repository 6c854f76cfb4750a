#include "memory/owned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

namespace halay::memory {
namespace {

OwnedBuffer make(size_t size_bytes) { return std::move(OwnedBuffer::make(size_bytes)).value(); }

TEST(OwnedBuffer, IsAlignedAndHasItsSize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{100'000}}) {
    const OwnedBuffer buffer = make(size);
    ASSERT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 128, 0u);
    EXPECT_EQ(buffer.size_bytes(), size);
    std::memset(buffer.data(), 7, size);
  }
}

TEST(OwnedBuffer, LivesOnWhenDetachedAndIsFreedByAnyThread) {
  void* memory;
  {
    OwnedBuffer buffer = make(1000);
    std::memset(buffer.data(), 3, 1000);
    memory = buffer.detach();
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(buffer.size_bytes(), 0u);
    EXPECT_EQ(buffer.detach(), nullptr);
  }
  EXPECT_EQ(static_cast<unsigned char*>(memory)[999], 3);
  std::thread([memory] { OwnedBuffer::free_detached(memory); }).join();
}

TEST(OwnedBuffer, MovesItsMemory) {
  OwnedBuffer a = make(10);
  void* const data = a.data();
  OwnedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is shown
  b = make(20);
  EXPECT_EQ(b.size_bytes(), 20u);
}

TEST(OwnedBuffer, AnswersAnImpossibleSizeWithNoMemory) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 128, SIZE_MAX / 2}) {
    EXPECT_EQ(OwnedBuffer::make(size).status().code(), Code::no_memory);
  }
}

TEST(OwnedBufferDeathTest, SaysSoWhenTheMemoryIsNotADetachedOne) {
  alignas(128) static unsigned char other[256] = {};
  OwnedBuffer::free_detached(nullptr);
  EXPECT_DEATH(OwnedBuffer::free_detached(other + 128), "kAlive");
}

}  // namespace
}  // namespace halay::memory
