// Memory of a result that the engine owns: it can be taken out of the engine and freed without it (halay_detach_result,
// halay_memory_free).
// Thread: any; one OwnedBuffer is used by one thread at a time.   Owns: its memory, until detach().
#pragma once

#include <cstddef>

#include "base/status.h"

namespace halay::memory {

class OwnedBuffer {
 public:
  OwnedBuffer() = default;
  OwnedBuffer(OwnedBuffer&& other) noexcept;
  OwnedBuffer& operator=(OwnedBuffer&& other) noexcept;
  ~OwnedBuffer();

  // Aligned to 128 bytes, contents undefined. A buffer of zero bytes has an address too. no_memory if the system has
  // none.
  static Result<OwnedBuffer> make(size_t size_bytes);

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

  // The memory, which lives until free_detached(memory). This buffer is empty afterwards.
  void* detach();
  // nullptr is ignored. Asserts that `memory` came from detach() and was not freed before.
  static void free_detached(void* memory);

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace halay::memory
