// What the planner is told of a lane's members: windows, links, demanded algorithms. Equal on all of them, so that
// all plan alike.
// Thread: any (value).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "collective/plan.h"
#include "execute/executor.h"
#include "execute/member.h"

namespace halay::execute {

class LaneSurroundings {
 public:
  LaneSurroundings(transport::Fabric& fabric, const LaneSpec& spec, const ExecutorOptions& options);

  // `windows`: the lane has them and all its members take part.
  const collective::Surroundings& of(OpKind kind, bool windows) const {
    return by_kind_[windows ? 1 : 0][static_cast<size_t>(kind)];
  }
  // Lanes of one Executor with equal numbers have equal Surroundings.
  uint64_t id(bool windows) const { return (windows ? 1 : 0) | (shared_memory_ ? 2 : 0); }
  // The tiny path stands for the planner's own choice at its sizes, so a demand for an algorithm switches it off.
  bool tiny_allowed(OpKind kind) const { return of(kind, true).force_algorithm.empty(); }
  // All members are on one machine and do not talk by TCP.
  bool shared_memory() const { return shared_memory_; }

 private:
  static constexpr size_t kKinds = static_cast<size_t>(OpKind::join) + 1;
  std::array<collective::Surroundings, kKinds> by_kind_[2];
  bool shared_memory_ = false;
};

// "allreduce=ring,broadcast=binomial": what it demands for `kind`, or nothing. An entry without "=" is for allreduce.
std::string_view demanded_algorithm(std::string_view demands, OpKind kind);

}  // namespace halay::execute
