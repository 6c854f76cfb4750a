// Learns which cached tensors come together, so that the decider knows when waiting for company is over.
// A burst is what was decided in one list the last time; when all of it is ready again, nothing more is expected.
// Thread: whoever holds the engine's token.   Owns: sizes of bursts; the places belong to the tensors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halay::negotiate {

// The burst that a tensor belongs to; 0: none yet.
struct BurstPlace {
  uint32_t burst = 0;
};

class Bursts {
 public:
  // A tensor is ready to be decided.
  void ready(BurstPlace place);
  // Nothing is ready whose company is not ready too, or unknown.
  bool settled() const { return incomplete_ == 0 && unknown_ == 0; }
  // Only tensors are ready about whose company nothing is known, or that need none.
  bool only_unknown() const { return incomplete_ == 0 && unknown_ > 0; }

  // Everything that was ready has been decided; `places` are those that are cached. Complete bursts stay as they are,
  // and so do incomplete ones for some closes: a rank that was late once has not changed what comes together. The rest
  // becomes one burst. With `join_previous` all of them become part of the burst of the last close.
  void close(std::span<BurstPlace* const> places, bool join_previous);
  // A tensor is not cached any more.
  void leave(BurstPlace& place);
  // The one burst of the last close; 0 if there were several or none.
  uint32_t previous() const { return previous_; }

 private:
  struct Burst {
    uint32_t size = 0;
    uint32_t ready = 0;
    uint32_t misses = 0;  // closes one after another in which it was not complete
    bool judged = false;  // in the close that is being made
    bool stays = false;
  };
  uint32_t add();
  void move(BurstPlace& place, uint32_t to);

  std::vector<Burst> bursts_{1};  // 0 is none
  std::vector<uint32_t> free_;
  uint32_t incomplete_ = 0;
  uint32_t unknown_ = 0;
  uint32_t previous_ = 0;
};

}  // namespace halay::negotiate
