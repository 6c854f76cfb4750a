#include "engine/engine.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "engine/binding.h"
#include "math/kernels.h"

namespace halay::engine {
class Engine::Visit {
 public:
  explicit Visit(Engine& engine) : engine_(engine) {
    engine_.visitors_.fetch_add(1, std::memory_order_seq_cst);
    inside_ = engine_.started_.load(std::memory_order_seq_cst);
  }
  ~Visit() { engine_.visitors_.fetch_sub(1, std::memory_order_release); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  // False: there is no world, or it is going away.
  bool inside() const { return inside_; }

 private:
  Engine& engine_;
  bool inside_;
};

Engine::Engine(EngineOptions options)
    : config_(std::move(options.config)),
      hub_(std::move(options.hub)),
      clock_(options.clock ? *options.clock : system_clock()),
      timeline_(names_),
      intake_(handles_, names_) {
  set_log(log_level_from(config_.log_level), config_.log_hide_time, static_cast<int32_t>(config_.rank));
}

Engine::~Engine() { (void)shutdown(); }

Status Engine::not_started() const {
  return Status::not_initialized("halay has not been initialized, or was shut down; call init() first");
}

Status Engine::submit(std::span<Submission> submissions, Handle* out) {
  if (submissions.empty()) return Status::invalid_argument("a group of no tensors");
  const Visit visit(*this);
  if (!visit.inside()) return not_started();
  bool urgent = true;
  for (Submission& submission : submissions) {
    HALAY_RETURN_IF_ERROR(check(submission));
    if (submission.set != submissions[0].set)
      return Status::invalid_argument("the tensors of one group have one process set");
    urgent = urgent && (submission.flags & kUrgent) != 0;
  }
  if (submissions.size() > 1) name_group(submissions);
  // Few are more than some hundred; the array is for operations, not for bytes.
  std::vector<Operation*> operations(submissions.size());
  HALAY_RETURN_IF_ERROR(intake_.submit(submissions, operations.data()));
  std::ranges::transform(operations, out, [](const Operation* operation) { return operation->handle.load(); });
  // Who waits at once will drive itself.
  if (!urgent) charge_->nudge();
  return {};
}

Result<Handle> Engine::join() {
  const Visit visit(*this);
  if (!visit.inside()) return not_started();
  Operation* operation = nullptr;
  HALAY_RETURN_IF_ERROR(intake_.join(&operation));
  charge_->nudge();
  return operation->handle.load();
}

Status Engine::check(Submission& submission) const {
  Request& request = submission.request;
  int member_count = 0;
  {
    const std::lock_guard lock(sets_mutex_);
    const auto found = set_infos_.find(submission.set);
    if (found == set_infos_.end()) {
      return Status::not_a_member(text("process set ", submission.set,
                                       " is not known on this rank: it was never created "
                                       "here, was removed, or this rank is not a member"));
    }
    const SetInfo& info = found->second;
    member_count = static_cast<int>(info.ranks.size());
    if (traits_of(request.kind).has_root) {
      const auto root = std::ranges::find(info.ranks, request.root);
      if (root == info.ranks.end()) {
        return Status::invalid_argument(text(name_of(request.kind), ": root rank ", request.root,
                                             " is not among the ranks ", info.ranks, " of the process set"));
      }
      request.root = static_cast<int32_t>(root - info.ranks.begin());
    }
  }
  if (request.device != DeviceType::cpu) {
    return Status::unsupported(
        "device tensors need the CUDA engine, which this version does not have; copy to the CPU");
  }
  if (traits_of(request.kind).reduces) {
    const auto policy = config_.int_average == "error" ? math::IntAverage::error : math::IntAverage::truncate;
    HALAY_RETURN_IF_ERROR(
        math::check_arithmetic(request.dtype, request.reduce_op, request.prescale, request.postscale, policy));
  }
  return check_submission(submission, member_count);
}

void Engine::name_group(std::span<Submission> submissions) {
  const auto first = static_cast<uint64_t>(submissions[0].request.name);
  const uint64_t key = (first << 32) | submissions.size();
  NameId group{};
  {
    const std::lock_guard lock(sets_mutex_);
    NameId& known = group_names_[key];
    if (known == NameId{}) {
      known = names_.intern(text(names_.text(submissions[0].request.name), " and ", submissions.size() - 1, " more"));
    }
    group = known;
  }
  for (Submission& submission : submissions) {
    submission.request.group = group;
    submission.request.group_size = static_cast<uint32_t>(submissions.size());
  }
}

Result<bool> Engine::poll(Handle handle) {
  const Operation* operation = handles_.find(handle);
  if (operation == nullptr) return Status::invalid_argument(text("handle ", handle, " is not known; was it released?"));
  if (operation->state.load(std::memory_order_acquire) == OperationState::done) return true;
  const Visit visit(*this);
  // Nobody may be waiting: a poll moves the world on too.
  if (visit.inside()) charge_->drive_once();
  return operation->state.load(std::memory_order_acquire) != OperationState::pending;
}

Status Engine::wait(Handle handle, int64_t timeout_ms) {
  const Operation* operation = handles_.find(handle);
  if (operation == nullptr) return Status::invalid_argument(text("handle ", handle, " is not known; was it released?"));
  const auto done = [&] {
    return operation->state.load(std::memory_order_acquire) != OperationState::pending || operation->handle != handle;
  };
  if (!done()) {
    const Visit visit(*this);
    if (visit.inside()) {
      if ((operation->submission.flags & kUrgent) == 0 && !operation->decided.load(std::memory_order_relaxed)) {
        intake_.urge(operation->submission.set);
      }
      const Time deadline = timeout_ms < 0 ? Time::never() : clock_.now().plus_ms(timeout_ms);
      if (timeout_ms == 0) charge_->drive_once();
      if (!charge_->drive_until(done, deadline)) {
        return Status::timeout(text("'", names_.text(operation->submission.request.name), "' has not completed within ",
                                    timeout_ms, " ms; it goes on"));
      }
    } else if (!done()) {
      return not_started();
    }
  }
  return handles_.status_of(handle);
}

Status Engine::wait_many(std::span<const Handle> handles, int64_t timeout_ms) {
  const Time deadline = timeout_ms < 0 ? Time::never() : clock_.now().plus_ms(timeout_ms);
  Status first;
  for (const Handle handle : handles) {
    const int64_t left_ms = timeout_ms < 0 ? -1 : std::max<int64_t>(deadline.ns - clock_.now().ns, 0) / 1'000'000;
    Status status = wait(handle, left_ms);
    if (status.code() == Code::timeout) return status;
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Result<size_t> Engine::next_completed(std::span<Handle> out, int64_t timeout_ms) {
  if (const size_t count = handles_.take_completed(out); count > 0) return count;
  const Visit visit(*this);
  if (!visit.inside()) return not_started();
  const Time deadline = timeout_ms < 0 ? Time::never() : clock_.now().plus_ms(timeout_ms);
  const bool some = charge_->drive_until([&] { return handles_.has_completed() || !started_.load(); }, deadline);
  if (!some) return Status::timeout(text("nothing completed within ", timeout_ms, " ms"));
  const size_t count = handles_.take_completed(out);
  if (count == 0) return not_started();
  return count;
}

void Engine::call(const std::function<void(EngineToken&)>& call) {
  std::atomic<bool> ran{false};
  const std::function<void(EngineToken&)> marked = [&](EngineToken& token) {
    call(token);
    ran.store(true, std::memory_order_release);
  };
  intake_.call(&marked);
  charge_->drive_until([&] { return ran.load(std::memory_order_acquire); }, Time::never());
}

Status Engine::abort(const std::string& reason) {
  const Visit visit(*this);
  if (!visit.inside()) return not_started();
  const int32_t rank = info_.rank;
  call([&](EngineToken& token) { world_->lose(token, Status(Code::aborted, reason, rank)); });
  return {};
}

Result<WorldInfo> Engine::world_info() const {
  if (!started_.load(std::memory_order_acquire)) return not_started();
  return info_;
}

std::string Engine::timeline_path(const std::string& path) const {
  const std::string rank = text(info_.rank);
  std::string out = path;
  if (const size_t at = out.find("{rank}"); at != std::string::npos) return out.replace(at, 6, rank);
  if (!config_.timeline_all) return info_.rank == 0 ? out : std::string();
  const size_t dot = out.find_last_of("./");
  const size_t end = dot == std::string::npos || out[dot] == '/' ? out.size() : dot;
  return out.insert(end, text(".", rank));
}

Status Engine::start_timeline(const std::string& path, bool mark_cycles) {
  if (!started_.load(std::memory_order_acquire)) return not_started();
  const std::string own = timeline_path(path);
  if (own.empty()) return {};  // rank 0 writes
  trace::TimelineOptions options;
  options.rank = info_.rank;
  options.size = info_.size;
  options.mark_cycles = mark_cycles;
  options.max_bytes = static_cast<size_t>(config_.timeline_max_bytes);
  return timeline_.start(own, options);
}

std::string Engine::stats() {
  std::string out = text("handles_open ", handles_.open_count(), "\nnames ", names_.size(), "\ntimeline_dropped ",
                         timeline_.dropped(), "\n");
  const Visit visit(*this);
  if (!visit.inside()) return out;
  out += text("operations_submitted ", intake_.operations_submitted(), "\nsleeps ", charge_->sleeps(), "\nwakes ",
              charge_->wakes(), "\n");
  call([&](EngineToken& token) { out += world_->stats(token); });
  return out;
}

std::string Engine::recorder_dump() {
  std::string out;
  const Visit visit(*this);
  if (visit.inside()) call([&](EngineToken& token) { out += world_->describe(token, clock_.now()); });
  return out + timeline_.recent();
}

}  // namespace halay::engine
