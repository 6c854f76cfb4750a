// Pipe over the memory of a pair: for ranks of one process (inproc) and of one machine (shm).
// Thread: whoever holds the engine's token.   Owns: its share of the memory and of the peer's doorbell.
#pragma once

#include <memory>
#include <string_view>

#include "region/doorbell.h"
#include "transport/pair.h"
#include "transport/pipe.h"

namespace halay::transport {

class RingPipe final : public Pipe {
 public:
  struct Parts {
    std::string_view transport;    // static text
    std::shared_ptr<void> keeper;  // of the memory
    std::byte* memory = nullptr;
    size_t ring_bytes = 0;
    int side = 0;
    std::shared_ptr<const region::Doorbell> peer_bell;
  };
  explicit RingPipe(Parts parts);
  ~RingPipe() override;

  std::string_view transport() const override { return parts_.transport; }
  size_t write(std::span<const std::span<const std::byte>> parts) override;
  size_t read(std::span<std::byte> into) override;
  bool ended() override;
  void ring() override;

  // Rings the peer if it sleeps, for something that did not go through this pipe. After a full_fence().
  void ring_for_data();
  // The kernel says that the peer's process is gone: what is in the ring still counts.
  void peer_gone() { peer_gone_ = true; }
  // Sleep and wake, first half and second half; between them a full_fence() for all pipes together.
  void sleep(bool wants_room);
  bool something_came(bool wants_room);
  void wake();
  // Nothing is read or written any more.
  void abandon() { abandoned_ = true; }

 private:
  Parts parts_;
  PairView pair_;
  bool wrote_ = false, took_ = false;
  bool peer_gone_ = false, abandoned_ = false;
};

}  // namespace halay::transport
