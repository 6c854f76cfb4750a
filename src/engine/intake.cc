#include "engine/intake.h"

#include <algorithm>

#include "base/text.h"

namespace halay::engine {
void Intake::open_set(SetId set) {
  MutexLock lock(mutex_);
  sets_[set] = {};
}

void Intake::close_set(SetId set) {
  MutexLock lock(mutex_);
  sets_.erase(set);
}

void Intake::refuse_all(Status why) {
  MutexLock lock(mutex_);
  refusal_ = std::move(why);
}

void Intake::reset() {
  MutexLock lock(mutex_);
  refusal_ = {};
  sets_.clear();
  queue_.clear();
  filled_.store(false, std::memory_order_release);
}

void Intake::push(const Intent& intent) {
  queue_.push_back(intent);
  filled_.store(true, std::memory_order_release);
}

Status Intake::check(OpenSet& set, std::span<const Submission> submissions) {
  for (size_t i = 0; i < submissions.size(); ++i) {
    const NameId name = submissions[i].request.name;
    const auto index = static_cast<size_t>(name);
    if (index >= set.lines.size()) set.lines.resize(index + 64);
    for (size_t j = 0; j < i; ++j) {
      if (submissions[j].request.name != name) continue;
      return Status::duplicate_name(text("'", names_.text(name), "' stands twice in one group"));
    }
    if (set.lines[index].holder != nullptr && (submissions[i].flags & kRepeatable) == 0) {
      return Status::duplicate_name(text("'", names_.text(name),
                                         "' is still in flight on this rank; wait for it, or give "
                                         "the second one another name"));
    }
  }
  return {};
}

Status Intake::submit(std::span<const Submission> submissions, Operation** out) {
  MutexLock lock(mutex_);
  if (!refusal_.ok()) return refusal_;
  const auto found = sets_.find(submissions[0].set);
  if (found == sets_.end()) {
    return Status::not_a_member(text("process set ", submissions[0].set,
                                     " is not known on this rank: it was never created "
                                     "here, was removed, or this rank is not a member"));
  }
  OpenSet& set = found->second;
  HALAY_RETURN_IF_ERROR(check(set, submissions));
  for (size_t i = 0; i < submissions.size(); ++i) {
    out[i] = handles_.open();
    if (out[i] != nullptr) {
      out[i]->submission = submissions[i];
      continue;
    }
    while (i-- > 0) handles_.cancel(*out[i]);
    return Status::no_memory("2^24 operations are in flight or were never released");
  }
  set.operations += submissions.size();
  submitted_.fetch_add(submissions.size(), std::memory_order_relaxed);
  if (submissions.size() > 1) {
    auto bundle = std::make_shared<Bundle>();
    bundle->operations.assign(out, out + submissions.size());
    bundle->without_name = submissions.size();
    for (Operation* operation : bundle->operations) operation->bundle = bundle;
  }
  for (size_t i = 0; i < submissions.size(); ++i) stand_in_line(set, *out[i]);
  return {};
}

void Intake::stand_in_line(OpenSet& set, Operation& operation) {
  Line& line = set.lines[static_cast<size_t>(operation.submission.request.name)];
  operation.next_in_line = nullptr;
  if (line.holder == nullptr) {
    line.holder = line.last = &operation;
    holds_name(operation);
  } else {
    line.last->next_in_line = &operation;
    line.last = &operation;
  }
}

void Intake::leave_line(OpenSet& set, const Operation& operation) {
  Line& line = set.lines[static_cast<size_t>(operation.submission.request.name)];
  if (line.holder != &operation) return;  // the world is lost: those that wait end too
  line.holder = operation.next_in_line;
  if (line.holder != nullptr) holds_name(*line.holder);
}

void Intake::holds_name(Operation& operation) {
  if (operation.bundle == nullptr) {
    push({Intent::Kind::operation, &operation, operation.submission.set, nullptr});
    return;
  }
  if (--operation.bundle->without_name > 0) return;
  for (Operation* one : operation.bundle->operations)
    push({Intent::Kind::operation, one, one->submission.set, nullptr});
}

Status Intake::join(Operation** out) {
  MutexLock lock(mutex_);
  if (!refusal_.ok()) return refusal_;
  const auto found = sets_.find(0);
  if (found == sets_.end()) return Status::not_initialized("the world has not been built");
  if (found->second.joined) return Status::duplicate_name("this rank has joined already; wait for that first");
  Operation* operation = handles_.open();
  if (operation == nullptr) return Status::no_memory("2^24 operations are in flight or were never released");
  operation->submission = {};
  operation->submission.request.kind = OpKind::join;
  found->second.joined = true;
  ++found->second.operations;
  *out = operation;
  push({Intent::Kind::join, operation, 0, nullptr});
  return {};
}

void Intake::urge(SetId set) {
  MutexLock lock(mutex_);
  push({Intent::Kind::urge, nullptr, set, nullptr});
}

void Intake::call(const std::function<void(EngineToken&)>* call) {
  MutexLock lock(mutex_);
  push({Intent::Kind::call, nullptr, 0, call});
}

void Intake::finished(std::span<Operation* const> operations) {
  MutexLock lock(mutex_);
  for (const Operation* operation : operations) {
    const auto found = sets_.find(operation->submission.set);
    if (found == sets_.end()) continue;
    --found->second.operations;
    if (operation->submission.request.kind == OpKind::join) {
      found->second.joined = false;
    } else {
      leave_line(found->second, *operation);
    }
  }
}

size_t Intake::in_flight(SetId set) const {
  MutexLock lock(mutex_);
  const auto found = sets_.find(set);
  return found == sets_.end() ? 0 : found->second.operations;
}

void Intake::take(std::vector<Intent>& out) {
  out.clear();
  MutexLock lock(mutex_);
  std::swap(out, queue_);
  filled_.store(false, std::memory_order_release);
}

}  // namespace halay::engine
