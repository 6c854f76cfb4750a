// Doorbell: wakes one sleeper, of any process. An eventfd; whoever holds a copy of its descriptor may ring.
// Thread: ring() any.   Owns: the descriptor.
#pragma once

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::region {

class Doorbell {
 public:
  Doorbell() = default;
  // The bell of another process, as it was passed to us.
  explicit Doorbell(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<Doorbell> create();
  // Another descriptor of the same bell.
  Result<Doorbell> copy() const;

  void ring() const;
  // Takes back what was rung.
  void quiet() const;
  int descriptor() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
};

}  // namespace halay::region
