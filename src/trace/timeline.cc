#include "trace/timeline.h"

#include <chrono>

#include "base/annotations.h"
#include "base/text.h"
#include "trace/recorder.h"
#include "trace/writer.h"

namespace halay::trace {

struct Timeline::State {
  explicit State(NameTable& name_table) : names(name_table) {}

  NameTable& names;
  Recorder recorder;
  std::atomic<uint64_t> dropped{0};
  Mutex control;  // start and stop, one after the other; taken before `session`
  Mutex session;  // held for the length of one push: whoever starts or stops waits no longer than that
  std::unique_ptr<Writer> writer HALAY_GUARDED_BY(session);
  std::string path HALAY_GUARDED_BY(control);

  void record(const Event& event, bool to_file, std::span<const int64_t> dims = {}) {
    recorder.record(event);
    if (!to_file) return;
    const MutexLock lock(session);
    if (writer != nullptr && !writer->push(event, dims)) dropped.fetch_add(1, std::memory_order_relaxed);
  }
};

Timeline::Timeline(NameTable& names) : state_(std::make_unique<State>(names)) {}
Timeline::~Timeline() { static_cast<void>(stop()); }

Status Timeline::start(const std::string& path, const TimelineOptions& given) {
  const MutexLock control(state_->control);
  if (active()) {
    return Status::invalid_argument(text("timeline ", path, ": ", state_->path, " is being written; stop that first"));
  }
  TimelineOptions options = given;
  if (options.start_at == Time::never()) options.start_at = system_clock().now();
  const auto epoch = std::chrono::system_clock::now().time_since_epoch();
  ChromeText chrome(state_->names, options);
  std::string header;
  chrome.append_header(header, std::chrono::duration_cast<std::chrono::microseconds>(epoch).count());
  HALAY_TRY(auto file, TraceFile::create(path, header));
  auto writer = std::make_unique<Writer>(std::move(chrome), std::move(file), options);
  state_->path = path;
  const MutexLock session(state_->session);
  state_->writer = std::move(writer);
  active_.store(true, std::memory_order_relaxed);
  return {};
}

Status Timeline::stop() {
  const MutexLock control(state_->control);
  std::unique_ptr<Writer> writer;
  {
    const MutexLock session(state_->session);
    active_.store(false, std::memory_order_relaxed);
    writer = std::move(state_->writer);
  }
  return writer == nullptr ? Status() : writer->finish();
}

void Timeline::negotiate_begin(NameId name, OpKind kind, Time at) {
  state_->record({at, name, EventKind::negotiate_begin, static_cast<uint8_t>(kind)}, active());
}
void Timeline::rank_ready(NameId name, int32_t rank, Time at) {
  state_->record({at, name, EventKind::rank_ready, 0, 0, rank}, active());
}
void Timeline::negotiate_end(NameId name, Time at) { state_->record({at, name, EventKind::negotiate_end}, active()); }
void Timeline::operation_begin(NameId name, OpKind kind, Time at) {
  state_->record({at, name, EventKind::operation_begin, static_cast<uint8_t>(kind)}, active());
}
void Timeline::activity_begin(NameId name, Activity activity, Time at) {
  state_->record({at, name, EventKind::activity_begin, static_cast<uint8_t>(activity)}, active());
}
void Timeline::activity_end(NameId name, Time at) { state_->record({at, name, EventKind::activity_end}, active()); }
void Timeline::operation_end(NameId name, DType dtype, const Shape& shape, Time at) {
  state_->record({at, name, EventKind::operation_end, static_cast<uint8_t>(dtype),
                  static_cast<uint8_t>(shape.dim_count()), shape.element_count()},
                 active(), shape.dims());
}
void Timeline::list_decided(uint64_t number, Time at) {
  state_->record({at, {}, EventKind::list_decided, 0, 0, static_cast<int64_t>(number)}, active());
}

uint64_t Timeline::dropped() const { return state_->dropped.load(std::memory_order_relaxed); }

std::string Timeline::recent() const {
  std::string out;
  for (const Event& event : state_->recorder.last()) append_line(out, state_->names, event);
  return out;
}

}  // namespace halay::trace
