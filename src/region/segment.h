// Segment: memory that several processes of one machine map. A memfd of sealed size; it has no name and leaves nothing
// behind.
//
// Thread: any, one at a time.   Owns: the mapping and, until close_descriptor(), the descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::region {

enum class Backing : uint8_t { automatic, dev_shm };  // automatic: memfd, and /dev/shm only where memfd is refused

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  // Zeroed, reserved and touched: a full machine is an error here (`no_memory`), not a SIGBUS later.
  static Result<Segment> create(std::string_view name, size_t bytes, Backing backing = Backing::automatic);
  // What another process made. Refuses what has another size than announced.
  static Result<Segment> map(UniqueFd fd, size_t expected_bytes);

  std::byte* data() const { return data_; }
  size_t size() const { return size_bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  int descriptor() const { return fd_.get(); }
  void close_descriptor() { fd_.reset(); }
  // Replaces the mapping in place by a private copy: nobody sees our writes any more, nor we theirs.
  Status make_private();

 private:
  static Result<Segment> map_whole(UniqueFd fd, size_t bytes);

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  UniqueFd fd_;
};

}  // namespace halay::region
