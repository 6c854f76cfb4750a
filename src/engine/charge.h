// Charge: who drives the world. Waiting threads come first, the engine thread steps in when nobody waits.
//
// What must hold: whenever the token is free, somebody is in the epoll with the word published that this rank sleeps,
// or is on the way to take the token. For that, whoever leaves the token
//   1. publishes the word and looks once more (publish_sleep), if somebody is in the epoll or going there; and
//   2. then wakes those who are parked because they found the token taken.
// The engine thread is parked while user threads wait: they have the shorter way. Sleeping in the epoll needs no token,
// so a waiter that comes takes it at once, and takes the word back. Thread: any.   Owns: the token; borrows the world.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "base/clock.h"
#include "engine/intake.h"
#include "engine/token.h"
#include "engine/world.h"

namespace halay::engine {

struct ChargeOptions {
  // How long a waiter looks again and again before it sleeps: first with pause, then giving the core away.
  int64_t pause_us = 20;
  int64_t spin_us = 200;
};

class Charge {
 public:
  Charge(World& world, Intake& intake, const Clock& clock, ChargeOptions options);
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

  // A user thread waits until done(), which any thread may ask at any time; false when the deadline passed first.
  bool drive_until(const std::function<bool()>& done, Time deadline);

  // Moves on what can be moved now, if nobody else does.
  void drive_once();

  // Something was left in the intake and nobody will wait for it at once: wakes the driver if it sleeps.
  void nudge();

  // The engine thread's life; returns after stop().
  void run();
  void stop();

  uint64_t sleeps() const { return sleeps_.load(std::memory_order_relaxed); }
  uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  // Takes the token if it is free, and the word that this rank sleeps back.
  EngineToken* try_take();
  // Drives until done(), the deadline, or sleep; with the token still held for the first two.
  EngineToken* drive_as_waiter(EngineToken* token, const std::function<bool()>& done, Time deadline);
  // One round; tells the other waiters when there is news for them.
  bool round(EngineToken& token);
  void drive_until_quiet(EngineToken& token);
  // Publishes that this rank sleeps. False: there is something to do after all (the word is taken back).
  bool publish_sleep(EngineToken& token);
  void leave(EngineToken& token);
  // Gives the token back and sleeps in the epoll; at once back if there was something to do.
  void sleep(EngineToken& token, Time deadline);
  // Until ready() or the deadline; ready() is asked again after each notify_parked().
  void park(const std::function<bool()>& ready, Time deadline);
  void notify_parked();

  World& world_;
  Intake& intake_;
  const Clock& clock_;
  const ChargeOptions options_;

  TokenBox token_;
  uint64_t seen_news_ = 0;  // by whoever holds the token

  std::atomic<bool> asleep_{false};  // the word is published: a submission must wake the epoll
  std::atomic<bool> nudged_{false};  // and has done so
  std::atomic<int> in_epoll_{0};
  std::atomic<int64_t> sleeps_until_ns_{INT64_MAX};  // the earliest deadline of those in the epoll
  std::atomic<int> waiters_{0};                      // user threads in drive_until()
  std::atomic<bool> waiter_in_epoll_{false};         // at most one of them sleeps there, the others are parked
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> sleeps_{0}, wakes_{0};

  std::atomic<int> parked_count_{0};
  std::mutex park_;
  std::condition_variable parked_;
};

}  // namespace halay::engine
