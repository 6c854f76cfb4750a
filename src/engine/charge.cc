#include "engine/charge.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/platform.h"

namespace halay::engine {
Charge::Charge(World& world, Intake& intake, const Clock& clock, ChargeOptions options)
    : world_(world), intake_(intake), clock_(clock), options_(options) {}

EngineToken* Charge::try_take() {
  EngineToken* token = token_.try_take();
  if (token != nullptr && asleep_.load(std::memory_order_relaxed)) {
    asleep_.store(false, std::memory_order_relaxed);
    world_.fabric().end_wait();
  }
  return token;
}

bool Charge::round(EngineToken& token) {
  const bool moved = world_.drive(token, clock_.now());
  if (world_.news() != seen_news_) {
    seen_news_ = world_.news();
    notify_parked();
    if (waiter_in_epoll_.load(std::memory_order_relaxed)) world_.fabric().wake();
  }
  return moved;
}

void Charge::drive_until_quiet(EngineToken& token) {
  while (round(token)) {
  }
}

bool Charge::publish_sleep(EngineToken& token) {
  nudged_.store(false, std::memory_order_relaxed);
  asleep_.store(true, std::memory_order_relaxed);
  bool quiet = world_.fabric().prepare_wait();
  // Mirror image of nudge(): the word first, then a look at what was left.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  quiet = quiet && intake_.empty() && !world_.glance(token, clock_.now());
  if (quiet) return true;
  asleep_.store(false, std::memory_order_relaxed);
  world_.fabric().end_wait();
  return false;
}

void Charge::nudge() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!asleep_.load(std::memory_order_relaxed) || nudged_.exchange(true, std::memory_order_relaxed)) return;
  wakes_.fetch_add(1, std::memory_order_relaxed);
  world_.fabric().wake();
}

void Charge::leave(EngineToken& token) {
  while (in_epoll_.load(std::memory_order_seq_cst) > 0 && !publish_sleep(token)) drive_until_quiet(token);
  const bool earlier = world_.next_deadline(token).ns < sleeps_until_ns_.load(std::memory_order_relaxed);
  if (asleep_.load(std::memory_order_relaxed) && earlier) world_.fabric().wake();
  token_.give_back(token);
  notify_parked();
}

void Charge::sleep(EngineToken& token, Time deadline) {
  in_epoll_.fetch_add(1, std::memory_order_seq_cst);
  if (!publish_sleep(token)) {
    in_epoll_.fetch_sub(1, std::memory_order_relaxed);
    token_.give_back(token);
    return;
  }
  deadline = std::min(deadline, world_.next_deadline(token));
  sleeps_until_ns_.store(deadline.ns, std::memory_order_relaxed);
  token_.give_back(token);
  notify_parked();
  sleeps_.fetch_add(1, std::memory_order_relaxed);
  world_.fabric().wait(deadline);
  in_epoll_.fetch_sub(1, std::memory_order_relaxed);
}

void Charge::park(const std::function<bool()>& ready, Time deadline) {
  std::unique_lock lock(park_);
  parked_count_.fetch_add(1, std::memory_order_seq_cst);
  if (deadline == Time::never()) {
    parked_.wait(lock, ready);
  } else {
    const auto left = std::chrono::nanoseconds(std::max<int64_t>(deadline.ns - clock_.now().ns, 0));
    parked_.wait_for(lock, left, ready);
  }
  parked_count_.fetch_sub(1, std::memory_order_relaxed);
}

void Charge::notify_parked() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (parked_count_.load(std::memory_order_relaxed) == 0) return;
  // With the lock: whoever counted itself has either seen the change or is waiting by now.
  const std::lock_guard lock(park_);
  parked_.notify_all();
}

bool Charge::drive_until(const std::function<bool()>& done, Time deadline) {
  waiters_.fetch_add(1, std::memory_order_relaxed);
  EngineToken* token = nullptr;
  bool reached = false;
  while (!(reached = done()) && clock_.now() < deadline) {
    token = try_take();
    if (token != nullptr) {
      token = drive_as_waiter(token, done, deadline);
    } else {
      park([&] { return done() || (!token_.held() && !waiter_in_epoll_.load()); }, deadline);
    }
    if (token != nullptr) {
      reached = done();
      break;
    }
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  if (token != nullptr) {
    leave(*token);
  } else {
    notify_parked();
  }
  return reached;
}

void Charge::drive_once() {
  if (EngineToken* token = try_take(); token != nullptr) {
    round(*token);
    leave(*token);
  }
}

EngineToken* Charge::drive_as_waiter(EngineToken* token, const std::function<bool()>& done, Time deadline) {
  Time idle_since = Time::never();
  for (;;) {
    const bool moved = round(*token);
    const Time now = clock_.now();
    if (done() || now >= deadline) return token;
    if (moved) {
      idle_since = Time::never();
      continue;
    }
    idle_since = std::min(idle_since, now);
    const int64_t idle_us = (now.ns - idle_since.ns) / 1000;
    if (idle_us < options_.pause_us) {
      pause_core();
    } else if (idle_us < options_.spin_us) {
      std::this_thread::yield();
    } else if (waiter_in_epoll_.exchange(true)) {
      // Another waiter sleeps there and will see what comes; this one is parked until then.
      leave(*token);
      park([&] { return done() || !waiter_in_epoll_.load(); }, deadline);
      return nullptr;
    } else {
      sleep(*token, deadline);
      waiter_in_epoll_.store(false);
      return nullptr;
    }
  }
}

void Charge::run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    EngineToken* token = try_take();
    if (token == nullptr) {
      park([&] { return !token_.held() || stopping_.load(); }, Time::never());
      continue;
    }
    drive_until_quiet(*token);
    if (waiters_.load(std::memory_order_seq_cst) == 0) {
      sleep(*token, Time::never());
      continue;
    }
    // Who waits has the shorter way to what comes.
    leave(*token);
    park([&] { return waiters_.load() == 0 || stopping_.load(); }, Time::never());
  }
}

void Charge::stop() {
  stopping_.store(true, std::memory_order_release);
  world_.fabric().wake();
  notify_parked();
}

}  // namespace halay::engine
