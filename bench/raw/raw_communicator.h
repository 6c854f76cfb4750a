// RawCommunicator: blocking collectives of ranks that already know what comes next: the executor's tiny path and
// Schedules, driven by the calling thread, without names, negotiation, queues or sleep. What a collective costs by
// itself.
// Thread: one.   Owns: the lane's windows in the Fabric (which it borrows), scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "execute/member.h"
#include "execute/plan_cache.h"
#include "execute/schedule_run.h"
#include "execute/surroundings.h"
#include "transport/fabric.h"

namespace halay::bench {

class RawCommunicator {
 public:
  // Of all ranks of the Fabric's world. Not ok where windows cannot be made or do not come within `timeout_ms`.
  static Result<std::unique_ptr<RawCommunicator>> create(transport::Fabric& fabric, int64_t timeout_ms);
  ~RawCommunicator();
  RawCommunicator(const RawCommunicator&) = delete;
  RawCommunicator& operator=(const RawCommunicator&) = delete;

  int rank() const { return me_; }
  int size() const { return static_cast<int>(members_.size()); }
  Status allreduce(const void* input, void* output, size_t count_elems, DType dtype, ReduceOp op);
  Status barrier();
  // The algorithm of the last call.
  std::string_view algorithm() const { return algorithm_; }

 private:
  explicit RawCommunicator(transport::Fabric& fabric);
  Status tiny(const void* input, void* output, size_t count_elems, DType dtype, ReduceOp op);
  Status prepare(size_t count_elems, DType dtype, ReduceOp op);
  Status run();
  // One turn of waiting: pauses, and yields where ranks outnumber cores or the wait is long. Not ok once a peer is
  // lost.
  Status pause(uint64_t turn);

  transport::Fabric& fabric_;
  execute::ExecutorOptions options_;
  execute::LaneSpec lane_;
  std::unique_ptr<execute::LaneSurroundings> surroundings_;
  std::vector<execute::Member> members_;
  int me_ = 0;
  bool crowded_ = false;
  execute::PlanCache plans_{64};
  std::shared_ptr<const execute::Plan> plan_;
  collective::Problem problem_;
  execute::Buffers buffers_;
  std::vector<std::byte> staging_, acc_;
  execute::ScheduleRun run_;
  std::vector<const void*> sources_;
  uint64_t tiny_number_ = 0, window_number_ = 0, flag_base_ = 0;
  std::string_view algorithm_;
};

}  // namespace halay::bench
