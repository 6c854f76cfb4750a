// The engine's token: whoever holds it owns the state of the world, and drives it.
// Thread: any.   Owns: nothing but the right itself.
#pragma once

#include <atomic>

#include "base/check.h"

namespace halay::engine {

// Passed by reference to every function that changes the world: having one proves that the token is held.
class EngineToken {
 public:
  EngineToken(const EngineToken&) = delete;
  EngineToken& operator=(const EngineToken&) = delete;

 private:
  friend class TokenBox;
  EngineToken() = default;
};

class TokenBox {
 public:
  // Null if somebody else holds it. Never blocks.
  EngineToken* try_take() { return held_.exchange(true, std::memory_order_acquire) ? nullptr : &token_; }
  void give_back(EngineToken&) {
    HALAY_ASSERT(held_.load(std::memory_order_relaxed));
    held_.store(false, std::memory_order_release);
  }
  bool held() const { return held_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> held_{false};
  EngineToken token_;
};

}  // namespace halay::engine
