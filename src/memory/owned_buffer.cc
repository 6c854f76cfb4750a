#include "memory/owned_buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "memory/pool.h"

namespace halay::memory {
namespace {

// Stands right in front of the data, as long as the alignment, so that freeing needs nothing but the address.
struct Header {
  uint64_t mark;
  uint64_t size_bytes;
};
static_assert(sizeof(Header) <= kAlignment);
constexpr uint64_t kAlive = 0x68616c61'79627566;
constexpr uint64_t kFreed = 0xdeaddead'dead6275;

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<unsigned char*>(data) - kAlignment); }

}  // namespace

Result<OwnedBuffer> OwnedBuffer::make(size_t size_bytes) {
  void* memory = nullptr;
  if (size_bytes <= SIZE_MAX - 2 * kAlignment) {
    memory = std::aligned_alloc(kAlignment, (size_bytes + 2 * kAlignment - 1) / kAlignment * kAlignment);
  }
  if (memory == nullptr) return Status::no_memory(text("no memory for a result of ", size_bytes, " bytes"));
  *static_cast<Header*>(memory) = {kAlive, size_bytes};
  OwnedBuffer buffer;
  buffer.data_ = static_cast<unsigned char*>(memory) + kAlignment;
  buffer.size_bytes_ = size_bytes;
  return buffer;
}

OwnedBuffer::OwnedBuffer(OwnedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

OwnedBuffer& OwnedBuffer::operator=(OwnedBuffer&& other) noexcept {
  if (this == &other) return *this;
  free_detached(data_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

OwnedBuffer::~OwnedBuffer() { free_detached(data_); }

void* OwnedBuffer::detach() {
  size_bytes_ = 0;
  return std::exchange(data_, nullptr);
}

void OwnedBuffer::free_detached(void* memory) {
  if (memory == nullptr) return;
  Header* const header = header_of(memory);
  HALAY_ASSERT(header->mark == kAlive);
  header->mark = kFreed;
  std::free(header);
}

}  // namespace halay::memory
