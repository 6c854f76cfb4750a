// ScheduleRun: one Schedule on its way, against real memory, channels and windows. Never blocks: advance() goes as
// far as it can and says why it stopped.
// Thread: whoever drives its lane.
// Owns: its Transfers. Memory, Schedule and members are borrowed until it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execute/extent.h"
#include "execute/member.h"
#include "math/kernels.h"
#include "transport/fabric.h"
#include "types/enums.h"
#include "types/schedule.h"

namespace halay::execute {

enum class Outcome : uint8_t {
  waiting,  // for a peer
  working,  // the budget is spent, there is more to do now
  done,
};

// The buffers of types/schedule.h. `acc` is `output` where the Schedule says so.
struct Buffers {
  Extent input, output, staging, acc;
};

struct Arithmetic {
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  math::Scale scale;
};

class ScheduleRun {
 public:
  // `members`: those that take part, in order. `announce_to`: where peers may sleep, it is told of every signal.
  struct Spec {
    const Schedule* schedule = nullptr;
    const Buffers* buffers = nullptr;
    std::span<const Member> members;
    Arithmetic arithmetic;
    int me = 0;
    uint64_t lane = 0;
    uint64_t flag_base = 0;
    size_t window_offset_bytes = 0;  // of the half that it uses
    transport::Fabric* announce_to = nullptr;
  };

  void start(const Spec& spec);
  // Works on at most about `budget_bytes`; a step is never split.
  Outcome advance(size_t budget_bytes);
  // Lets go of everything borrowed. Transfers still in flight must have been cancelled.
  void drop();

  size_t steps_done() const { return next_; }
  // Index of the member that the line waits for, or -1.
  int waits_for() const;
  std::string describe() const;

 private:
  bool satisfied(const Step& step) const;
  size_t run(const Step& step, size_t index);
  void post(const Step& step, size_t index);
  void copy(const Step& step);
  void load(const Step& step);
  void reduce(const Step& step);
  void finish(const Step& step);
  void reduce_all(const Step& step);
  void signal(const Step& step);
  size_t width(Buffer buffer) const { return buffer == Buffer::acc ? acc_width_ : width_; }
  // What lies together from element `done` of the region on, at most `want` elements (which it lowers).
  std::byte* run_at(const Region& region, size_t done, size_t& want) const;

  Spec spec_;
  // Results for the user go past the cache where the operation is larger than the cache. What lies in windows is read
  // by others at once: into the cache (docs/performance.md).
  math::Stores stores_to(Buffer buffer) const {
    return buffer == Buffer::output && larger_than_cache_ ? math::Stores::streaming : math::Stores::cached;
  }

  size_t next_ = 0;
  size_t width_ = 0, acc_width_ = 0;
  bool larger_than_cache_ = false;
  std::vector<transport::Transfer> transfers_;  // by step index; only posting steps use theirs
  std::vector<const void*> sources_;
};

}  // namespace halay::execute
