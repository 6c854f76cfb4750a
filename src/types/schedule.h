// Schedule: the steps of one member for one Batch, as data. It can be printed, checked, priced, simulated and run.
//
// Buffers hold elements of the batch's dtype, but `acc`, which holds elements of its accumulator type (float32 for
// float16 and bfloat16, else the same). Offsets and counts are in elements of the buffer.
//
// A Schedule is one line of steps, run in order. post_* starts a transfer, wait_* holds the line until it is done;
// between the two, nobody may write the region of a send, nor touch the region of a receive. Messages between two
// members match in the order in which they were posted; those of zero elements match too. At the end nothing is
// pending.
//
// dst may be exactly a source (the same first element), never partly over one; a copy onto itself does nothing. Where
// the dtype does not widen, staging may stand where a step names acc. Thread: any (value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "types/enums.h"

namespace halay {

enum class Buffer : uint8_t {
  input,    // this member's tensors, one after the other
  output,   // where the result goes; the same memory as input when a user asks for in place
  staging,  // private, batch dtype
  acc,      // private, accumulator type; is `output` where acc_is_output holds and the dtype does not widen
  window,   // of one member, in shared memory; only its owner writes it
};

struct Region {
  Buffer buffer = Buffer::input;
  int16_t member = -1;  // of a window
  size_t offset_elems = 0;
  size_t count_elems = 0;
};

enum class StepKind : uint8_t {
  post_send,   // src to peer
  wait_send,   // until post number `index` (a step index) has left src
  post_recv,   // from peer into dst
  wait_recv,   // until post number `index` has filled dst
  copy,        // dst = src, both of batch dtype
  load,        // dst (acc) = prescale * src (batch dtype)
  reduce,      // dst (acc) = src (acc) op src2 (acc); dst may be either of them
  finish,      // dst (batch dtype) = round(postscale * src (acc) / divisor)
  reduce_all,  // dst = finish(op over `sources` in canonical tree order of prescale * source), one pass, batch dtype
  signal,      // my flag `index` = base + value, after all that was written before
  wait_flag,   // until flag `index` of `peer` >= base + value
};

struct Step {
  StepKind kind = StepKind::copy;
  int16_t peer = -1;   // index among the batch's members
  uint32_t index = 0;  // wait_send, wait_recv: the step that posted; signal, wait_flag: the flag
  uint32_t value = 0;  // signal, wait_flag
  uint32_t first_source = 0, source_count = 0;  // reduce_all: range in Schedule::sources, one per member, in order
  Region dst, src, src2;
};

// Windows are used only where all members of the process set take part. Flags of one member: counters that only it
// writes and that only grow. Their base is agreed: after each Schedule that uses windows it grows by flag_span on every
// member. Such Schedules use the two halves of the data areas in turn, and window offsets count from the start of that
// half. Each hears from every member (by a wait_flag of at least 1) before it ends; so whoever begins one knows that
// all have left the one before the last, whose half it writes, and waits for nobody.
inline constexpr uint32_t kFlagCount = 4;

struct Schedule {
  std::string_view algorithm;  // static text
  std::vector<Step> steps;
  std::vector<Region> sources;
  size_t staging_elems = 0;
  size_t acc_elems = 0;
  bool acc_is_output = false;
  bool uses_windows = false;
  uint32_t flag_span = 0;  // the same on all members
  // For reports and the cost model: what this member sends, and the longest chain of messages.
  size_t sent_bytes = 0;
  uint32_t rounds = 0;
};

std::string_view name_of(Buffer buffer);
std::string_view name_of(StepKind kind);

}  // namespace halay
