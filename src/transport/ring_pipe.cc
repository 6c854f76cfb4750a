#include "transport/ring_pipe.h"

#include <utility>

namespace halay::transport {

using region::SleepWord;

RingPipe::RingPipe(Parts parts) : parts_(std::move(parts)), pair_(parts_.memory, parts_.ring_bytes, parts_.side) {}

RingPipe::~RingPipe() {
  if (abandoned_) return;
  pair_.mine.closed.store(1, std::memory_order_release);
  parts_.peer_bell->ring();
}

size_t RingPipe::write(std::span<const std::span<const std::byte>> parts) {
  if (abandoned_) return 0;
  const size_t written = pair_.out.write(parts);
  wrote_ |= written > 0;
  return written;
}

size_t RingPipe::read(std::span<std::byte> into) {
  if (abandoned_) return 0;
  const size_t got = pair_.in.read(into);
  took_ |= got > 0;
  return got;
}

bool RingPipe::ended() {
  if (pair_.in.broken()) return true;
  // The end first, then the ring: what was written before the end is seen.
  const bool end = peer_gone_ || pair_.theirs.closed.load(std::memory_order_acquire) != 0;
  return end && !abandoned_ && pair_.in.empty();
}

void RingPipe::ring() {
  const uint32_t done = (wrote_ ? SleepWord::kData : 0u) | (took_ ? SleepWord::kRoom : 0u);
  wrote_ = took_ = false;
  if (done == 0 || abandoned_) return;
  region::full_fence();
  if (pair_.theirs.sleep.should_ring(done)) parts_.peer_bell->ring();
}

void RingPipe::ring_for_data() {
  if (!abandoned_ && pair_.theirs.sleep.should_ring(SleepWord::kData)) parts_.peer_bell->ring();
}

void RingPipe::sleep(bool wants_room) {
  if (!abandoned_) pair_.mine.sleep.sleep_with(SleepWord::kData | (wants_room ? SleepWord::kRoom : 0u));
}

bool RingPipe::something_came(bool wants_room) {
  if (abandoned_) return false;
  if (!pair_.in.empty() || pair_.theirs.closed.load(std::memory_order_acquire) != 0) return true;
  return wants_room && pair_.out.has_room();
}

void RingPipe::wake() {
  if (!abandoned_) pair_.mine.sleep.woken();
}

}  // namespace halay::transport
