#include "engine/intake.h"

#include <algorithm>

#include "base/text.h"

namespace halay::engine {
namespace {

uint8_t& slot(std::vector<uint8_t>& by_name, NameId name) {
  const auto index = static_cast<size_t>(name);
  if (index >= by_name.size()) by_name.resize(index + 64);
  return by_name[index];
}

}  // namespace

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

void Intake::push(const Intent& intent) {
  queue_.push_back(intent);
  filled_.store(true, std::memory_order_release);
}

Status Intake::check(SetNames& set, std::span<const Submission> submissions, bool& must_wait) {
  for (size_t i = 0; i < submissions.size(); ++i) {
    const Submission& submission = submissions[i];
    const NameId name = submission.request.name;
    for (size_t j = 0; j < i; ++j) {
      if (submissions[j].request.name == name) {
        return Status::duplicate_name(text("'", names_.text(name), "' stands twice in one group"));
      }
    }
    if (slot(set.in_flight, name) == 0) continue;
    if ((submission.flags & kRepeatable) == 0) {
      return Status::duplicate_name(text("'", names_.text(name), "' is still in flight on this rank; wait for it, or give "
                                         "the second one another name"));
    }
    must_wait = true;
  }
  return {};
}

Status Intake::submit(std::span<const Submission> submissions, Operation** out) {
  MutexLock lock(mutex_);
  if (!refusal_.ok()) return refusal_;
  const auto found = sets_.find(submissions[0].set);
  if (found == sets_.end()) {
    return Status::not_a_member(text("process set ", submissions[0].set, " is not known on this rank: it was never created "
                                     "here, was removed, or this rank is not a member"));
  }
  SetNames& set = found->second;
  bool must_wait = false;
  HALAY_RETURN_IF_ERROR(check(set, submissions, must_wait));
  Bundle bundle;
  for (const Submission& submission : submissions) {
    Operation* operation = handles_.open();
    if (operation == nullptr) {
      for (Operation* opened : bundle) handles_.cancel(*opened);
      return Status::no_memory("2^24 operations are in flight or were never released");
    }
    operation->submission = submission;
    bundle.push_back(operation);
  }
  std::ranges::copy(bundle, out);
  set.operations += bundle.size();
  submitted_.fetch_add(bundle.size(), std::memory_order_relaxed);
  // One that waits lets no later one of the same name pass: is_free() looks at the waiting bundles too.
  if (must_wait || !is_free(set, bundle)) {
    waiting_.push_back(std::move(bundle));
  } else {
    enqueue(set, bundle);
  }
  return {};
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

bool Intake::is_free(SetNames& set, const Bundle& bundle) const {
  for (const Operation* operation : bundle) {
    if (slot(set.in_flight, operation->submission.request.name) != 0) return false;
  }
  // Nothing may pass a bundle that was here before and has a name in common with it.
  for (const Bundle& earlier : waiting_) {
    if (&earlier == &bundle) break;
    if (earlier[0]->submission.set != bundle[0]->submission.set) continue;
    for (const Operation* mine : bundle) {
      for (const Operation* theirs : earlier) {
        if (mine->submission.request.name == theirs->submission.request.name) return false;
      }
    }
  }
  return true;
}

void Intake::enqueue(SetNames& set, const Bundle& bundle) {
  for (Operation* operation : bundle) {
    slot(set.in_flight, operation->submission.request.name) = 1;
    push({Intent::Kind::operation, operation, operation->submission.set, nullptr});
  }
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
      slot(found->second.in_flight, operation->submission.request.name) = 0;
    }
  }
  for (auto bundle = waiting_.begin(); bundle != waiting_.end();) {
    const auto found = sets_.find((*bundle)[0]->submission.set);
    if (found == sets_.end() || !is_free(found->second, *bundle)) {
      ++bundle;
      continue;
    }
    enqueue(found->second, *bundle);
    bundle = waiting_.erase(bundle);
  }
}

size_t Intake::in_flight(SetId set) const {
  MutexLock lock(mutex_);
  const auto found = sets_.find(set);
  return found == sets_.end() ? 0 : found->second.operations;
}

std::vector<Operation*> Intake::take_waiting() {
  MutexLock lock(mutex_);
  std::vector<Operation*> out;
  for (const Bundle& bundle : waiting_) out.insert(out.end(), bundle.begin(), bundle.end());
  waiting_.clear();
  return out;
}

void Intake::take(std::vector<Intent>& out) {
  out.clear();
  MutexLock lock(mutex_);
  std::swap(out, queue_);
  filled_.store(false, std::memory_order_release);
}

}  // namespace halay::engine
