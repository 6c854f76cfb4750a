// Locks that clang's -Wthread-safety can follow. Elsewhere the annotations are nothing.
// Thread: any.
#pragma once

#include <mutex>

#if defined(__clang__)
#define HALAY_ANNOTATE(x) __attribute__((x))
#else
#define HALAY_ANNOTATE(x)
#endif

#define HALAY_CAPABILITY(name) HALAY_ANNOTATE(capability(name))
#define HALAY_SCOPED_CAPABILITY HALAY_ANNOTATE(scoped_lockable)
#define HALAY_GUARDED_BY(lock) HALAY_ANNOTATE(guarded_by(lock))
#define HALAY_REQUIRES(...) HALAY_ANNOTATE(requires_capability(__VA_ARGS__))
#define HALAY_EXCLUDES(...) HALAY_ANNOTATE(locks_excluded(__VA_ARGS__))
#define HALAY_ACQUIRE(...) HALAY_ANNOTATE(acquire_capability(__VA_ARGS__))
#define HALAY_TRY_ACQUIRE(...) HALAY_ANNOTATE(try_acquire_capability(__VA_ARGS__))
#define HALAY_RELEASE(...) HALAY_ANNOTATE(release_capability(__VA_ARGS__))
#define HALAY_NO_THREAD_SAFETY_ANALYSIS HALAY_ANNOTATE(no_thread_safety_analysis)

namespace halay {

class HALAY_CAPABILITY("mutex") Mutex {
 public:
  void lock() HALAY_ACQUIRE() { mutex_.lock(); }
  bool try_lock() HALAY_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() HALAY_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class HALAY_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HALAY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() HALAY_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace halay
