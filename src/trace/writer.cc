#include "trace/writer.h"

#include <array>
#include <chrono>

namespace halay::trace {
namespace {

constexpr size_t kTextBytes = size_t{1} << 20;  // about what is written at once
constexpr size_t kNoteBytes = 1024;             // kept free under a cap, for what is to be said at the end

}  // namespace

Writer::Writer(ChromeText chrome, std::unique_ptr<TraceFile> file, const TimelineOptions& options)
    : chrome_(std::move(chrome)), file_(std::move(file)), options_(options), ring_(options.ring_events) {
  thread_ = std::thread([this] { run(); });
}

Writer::~Writer() {
  if (thread_.joinable()) static_cast<void>(finish());
}

// The producer stores the event and then looks whether the writer sleeps; the writer says that it sleeps and then looks
// for an event. Both in one total order (seq_cst), so that one of them sees the other.
bool Writer::push(const Event& event, std::span<const int64_t> dims) {
  if (!ring_.push(event, dims)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (idle_.load()) {
    wake(false);
  } else if (!hurry_.load(std::memory_order_relaxed) && ring_.half_full()) {
    wake(true);
  }
  return true;
}

void Writer::wake(bool hurry) {
  {
    const MutexLock lock(mutex_);
    idle_.store(false);
    if (hurry) hurry_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_one();
}

void Writer::wait() {
  const MutexLock lock(mutex_);
  idle_.store(true);
  if (!ring_.empty() || finishing_) idle_.store(false);
  while (idle_.load(std::memory_order_relaxed)) changed_.wait(mutex_);
  // Something has happened: let more come together, unless the ring fills up.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.flush_ms);
  while (!hurry_.load(std::memory_order_relaxed) && !finishing_) {
    if (changed_.wait_until(mutex_, end) == std::cv_status::timeout) break;
  }
  hurry_.store(false, std::memory_order_relaxed);
}

void Writer::run() {
  for (;;) {
    wait();
    bool finishing = false;
    {
      const MutexLock lock(mutex_);
      finishing = finishing_;
    }
    do drain();
    while (finishing && !ring_.empty());
    if (finishing) return;
  }
}

// A disk that failed stays failed: from then on events are only taken out of the ring.
void Writer::drain() {
  text_.clear();
  append_events(text_);
  const uint64_t dropped = dropped_.load(std::memory_order_relaxed);
  if (dropped != dropped_noted_ && !full_) {
    dropped_noted_ = dropped;
    chrome_.append_note(text_, "EVENTS_DROPPED", "count", dropped);
  }
  if (failure_.ok()) failure_ = file_->append(text_);
}

void Writer::append_events(std::string& out) {
  Event event;
  std::array<int64_t, 255> dims;
  while (out.size() < kTextBytes && ring_.pop(event, dims)) {
    if (full_) {
      ++left_out_;
      continue;
    }
    const size_t before = out.size();
    chrome_.append(out, event, std::span(dims).first(event.dim_count));
    if (options_.max_bytes == 0 || file_->size_bytes() + out.size() + kNoteBytes <= options_.max_bytes) continue;
    out.resize(before);
    full_ = true;
    ++left_out_;
    chrome_.append_note(out, "TIMELINE_FULL", "max_bytes", options_.max_bytes);
  }
}

Status Writer::finish() {
  {
    const MutexLock lock(mutex_);
    finishing_ = true;
    idle_.store(false);
  }
  changed_.notify_one();
  thread_.join();
  if (left_out_ > 0 && failure_.ok()) {
    text_.clear();
    chrome_.append_note(text_, "EVENTS_LEFT_OUT", "count", left_out_);
    failure_ = file_->append(text_);
  }
  return failure_;
}

}  // namespace halay::trace
