// The C ABI: converts, catches, and nothing else. What the standard library throws becomes no_memory or internal here.
// Thread: any.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "engine/engine.h"
#include "halay/halay.h"
#include "memory/owned_buffer.h"

using halay::Result;
using halay::Status;
using halay::text;

struct halay_engine {
  explicit halay_engine(halay::engine::EngineOptions options) : engine(std::move(options)) {}
  halay::engine::Engine engine;
};

namespace halay::capi {
namespace {

struct LastError {
  std::string text;
  int32_t rank = -1;
};
thread_local LastError t_last_error;

// Set in a forked child before anything of it runs: there no engine thread lives, and locks may be held by nobody.
std::atomic<bool> g_forked{false};

halay_status report(const Status& status) {
  if (status.ok()) return HALAY_OK;
  t_last_error.text = status.text();
  t_last_error.rank = status.culprit();
  return static_cast<halay_status>(status.code());
}

// Every function of the ABI that can fail goes through here.
template <typename Function>
halay_status guarded(Function function) {
  if (g_forked.load(std::memory_order_relaxed)) {
    return report(
        Status::not_initialized("this is a forked child of the process that called halay's init(); it cannot take "
                                "part in collectives (DataLoader workers need not)"));
  }
  try {
    return report(function());
  } catch (const std::bad_alloc&) {
    return report(Status::no_memory("out of memory"));
  } catch (const std::exception& error) {
    return report(Status::internal(error.what()));
  }
}

Status required(const void* pointer, std::string_view what) {
  return pointer != nullptr ? Status() : Status::invalid_argument(text(what, " is NULL"));
}

Status has_size(uint64_t given, uint64_t least, std::string_view what) {
  if (given >= least) return {};
  return Status::invalid_argument(
      text(what, ".struct_size is ", given, ", at least ", least, " is needed; was it set?"));
}

Result<Shape> shape_from(const halay_request& request) {
  if (request.dim_count < 0 || static_cast<size_t>(request.dim_count) > Shape::kMaxDims) {
    return Status::invalid_argument(text("a tensor of ", request.dim_count, " dimensions; at most ", Shape::kMaxDims));
  }
  if (request.dim_count > 0) HALAY_RETURN_IF_ERROR(required(request.shape, "request.shape"));
  // So that bytes of the whole tensor fit in 63 bits, whatever the dtype.
  int64_t room = INT64_MAX / 8;
  for (int32_t i = 0; i < request.dim_count; ++i) {
    if (request.shape[i] < 0) return Status::invalid_argument(text("dimension ", i, " is ", request.shape[i]));
    if (request.shape[i] > 0) room /= request.shape[i];
    if (room == 0) {
      return Status::invalid_argument("the tensor has more than 2^60 elements");
    }
  }
  return Shape(std::span(request.shape, static_cast<size_t>(request.dim_count)));
}

Status convert(const halay_request& from, const NameTable& names, engine::Submission& to) {
  HALAY_RETURN_IF_ERROR(has_size(from.struct_size, sizeof(halay_request), "halay_request"));
  const auto kind = op_kind_from_number(from.kind);
  const auto dtype = dtype_from_number(from.dtype);
  if (!kind || *kind == OpKind::join)
    return Status::invalid_argument(text("kind ", from.kind, " is not one to submit"));
  if (!dtype) return Status::invalid_argument(text("dtype ", from.dtype, " is not in the table"));
  if (from.name == 0 || from.name >= names.size()) {
    return Status::invalid_argument(text("name ", from.name, " was not registered"));
  }
  Request& request = to.request;
  if (traits_of(*kind).reduces) {
    const auto op = reduce_op_from_number(from.reduce_op);
    if (from.reduce_op == 2) return Status::unsupported("Adasum is not there yet");
    if (!op) return Status::invalid_argument(text("reduce op ", from.reduce_op, " is not in the table"));
    request.reduce_op = *op;
    request.prescale = from.prescale;
    request.postscale = from.postscale;
    if (from.divisor != 0 && from.divisor != 1)
      return Status::invalid_argument(text("divisor ", from.divisor, " is neither 0 nor 1"));
    request.divisor = static_cast<Divisor>(from.divisor);
  }
  HALAY_TRY(request.shape, shape_from(from));
  if (from.device != HALAY_DEVICE_CPU && from.device != HALAY_DEVICE_CUDA) {
    return Status::invalid_argument(text("device ", from.device, " is not known"));
  }
  request.name = static_cast<NameId>(from.name);
  request.kind = *kind;
  request.dtype = *dtype;
  request.device = static_cast<DeviceType>(from.device);
  request.root = from.root_rank;
  if (from.split_count > 0 && from.splits != nullptr) {
    request.splits.assign(from.splits, from.splits + from.split_count);
  }
  to.set = from.process_set;
  to.flags = from.flags;
  to.input = from.input;
  to.output = from.output;
  to.output_bytes = from.output_bytes;
  return {};
}

Status give_text(const std::string& value, char* buffer, uint64_t capacity, uint64_t* size) {
  HALAY_RETURN_IF_ERROR(required(size, "size"));
  *size = value.size() + 1;
  if (buffer != nullptr && capacity >= *size) std::memcpy(buffer, value.c_str(), *size);
  return {};
}

struct EnumRow {
  std::string_view table;
  const char* name;
  int64_t number;
};
constexpr EnumRow kEnumRows[] = {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) {"dtype", #name, number},
#include "types/dtype.def"
#undef HALAY_DTYPE
#define HALAY_OP(name, number, reduces, root, output, shapes, fusable, cached) {"op_kind", #name, number},
#include "types/op_kind.def"
#undef HALAY_OP
#define HALAY_REDUCE_OP(name, number, on_bool) {"reduce_op", #name, number},
#include "types/reduce_op.def"
#undef HALAY_REDUCE_OP
#define HALAY_STATUS(name, number, blast) {"status", #name, number},
#include "base/status.def"
#undef HALAY_STATUS
};

}  // namespace
}  // namespace halay::capi

using halay::capi::convert;
using halay::capi::give_text;
using halay::capi::guarded;
using halay::capi::has_size;
using halay::capi::required;

extern "C" {

uint32_t halay_abi_version(void) { return HALAY_ABI_VERSION; }
const char* halay_version(void) { return halay::version().data(); }
const char* halay_last_error(void) { return halay::capi::t_last_error.text.c_str(); }
int32_t halay_last_error_rank(void) { return halay::capi::t_last_error.rank; }

halay_status halay_enum_table(const char* table, uint32_t index, const char** name, int64_t* number) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(table, "table"));
    for (const auto& row : halay::capi::kEnumRows) {
      if (row.table != table || index-- != 0) continue;
      *name = row.name;
      *number = row.number;
      return {};
    }
    return Status::invalid_argument(text("table '", table, "' has no such row"));
  });
}

halay_status halay_engine_create(const halay_engine_options* options, halay_engine** out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    std::vector<std::string> settings;
    if (options != nullptr) {
      HALAY_RETURN_IF_ERROR(has_size(options->struct_size, sizeof(halay_engine_options), "halay_engine_options"));
      for (const char* const* line = options->settings; line != nullptr && *line != nullptr; ++line)
        settings.emplace_back(*line);
    }
    std::vector<std::string> warnings;
    HALAY_TRY(halay::Config config, halay::read_config(settings, &warnings));
    static const int atfork = pthread_atfork(nullptr, nullptr, [] { halay::capi::g_forked.store(true); });
    (void)atfork;
    auto engine = std::make_unique<halay_engine>(halay::engine::EngineOptions{std::move(config), nullptr, nullptr});
    for (const std::string& warning : warnings) halay::log_line(halay::LogLevel::warning, warning);
    *out = engine.release();
    return {};
  });
}

halay_status halay_engine_address(halay_engine* engine, halay_bytes* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_TRY(const auto address, engine->engine.address());
    *out = {address.data(), address.size()};
    return {};
  });
}

halay_status halay_engine_start(halay_engine* engine, int32_t rank, int32_t size, const halay_bytes* addresses) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(addresses, "addresses"));
    std::vector<std::vector<std::byte>> all;
    for (int32_t r = 0; r < size; ++r) {
      const auto* bytes = static_cast<const std::byte*>(addresses[r].data);
      all.emplace_back(bytes, bytes + addresses[r].size_bytes);
    }
    return engine->engine.start(rank, all);
  });
}

halay_status halay_engine_start_from_environment(halay_engine* engine) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.start_from_environment();
  });
}

halay_status halay_engine_shutdown(halay_engine* engine) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.shutdown();
  });
}

void halay_engine_destroy(halay_engine* engine) {
  // In a forked child the engine thread does not exist; what the parent owns stays untouched.
  if (!halay::capi::g_forked.load(std::memory_order_relaxed)) delete engine;
}

halay_status halay_world_info(halay_engine* engine, halay_world* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    HALAY_RETURN_IF_ERROR(has_size(out->struct_size, sizeof(halay_world), "halay_world"));
    HALAY_TRY(const halay::WorldInfo info, engine->engine.world_info());
    out->rank = info.rank;
    out->size = info.size;
    out->local_rank = info.local_rank;
    out->local_size = info.local_size;
    out->cross_rank = info.cross_rank;
    out->cross_size = info.cross_size;
    out->homogeneous = info.homogeneous ? 1 : 0;
    return {};
  });
}

halay_status halay_abort(halay_engine* engine, const char* reason) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.abort(reason != nullptr ? reason : "no reason given");
  });
}

halay_status halay_process_set_create(halay_engine* engine, const int32_t* ranks, int32_t count,
                                      halay_process_set* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    if (count < 0 || (count > 0 && ranks == nullptr))
      return Status::invalid_argument(text("a process set of ", count, " ranks"));
    HALAY_TRY(*out, engine->engine.create_set(std::span(ranks, static_cast<size_t>(count))));
    return {};
  });
}

halay_status halay_process_set_destroy(halay_engine* engine, halay_process_set set) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.destroy_set(set);
  });
}

halay_status halay_process_set_query(halay_engine* engine, halay_process_set set, int32_t* ranks, int32_t capacity,
                                     int32_t* size, int32_t* member) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_TRY(const auto info, engine->engine.query_set(set));
    for (size_t i = 0; ranks != nullptr && i < info.ranks.size() && static_cast<int32_t>(i) < capacity; ++i)
      ranks[i] = info.ranks[i];
    if (size != nullptr) *size = static_cast<int32_t>(info.ranks.size());
    if (member != nullptr) *member = info.member;
    return {};
  });
}

halay_status halay_name_register(halay_engine* engine, const char* name, halay_name* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(name, "name"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    const size_t length = std::strlen(name);
    if (length == 0 || length > 65535)
      return Status::invalid_argument(text("a tensor name of ", length, " bytes; allowed are 1 to 65535"));
    *out = static_cast<halay_name>(engine->engine.names().intern(name));
    return {};
  });
}

halay_status halay_submit(halay_engine* engine, const halay_request* requests, uint32_t n, halay_handle* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(requests, "requests"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    if (n == 1) {
      halay::engine::Submission submission;
      HALAY_RETURN_IF_ERROR(convert(requests[0], engine->engine.names(), submission));
      return engine->engine.submit(std::span(&submission, 1), out);
    }
    std::vector<halay::engine::Submission> submissions(n);
    for (uint32_t i = 0; i < n; ++i)
      HALAY_RETURN_IF_ERROR(convert(requests[i], engine->engine.names(), submissions[i]));
    return engine->engine.submit(submissions, out);
  });
}

halay_status halay_join(halay_engine* engine, halay_handle* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    HALAY_TRY(*out, engine->engine.join());
    return {};
  });
}

halay_status halay_poll(halay_engine* engine, halay_handle handle, int32_t* done) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(done, "done"));
    HALAY_TRY(const bool ended, engine->engine.poll(handle));
    *done = ended ? 1 : 0;
    return {};
  });
}

halay_status halay_wait(halay_engine* engine, halay_handle handle, int64_t timeout_ms) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.wait(handle, timeout_ms);
  });
}

halay_status halay_wait_many(halay_engine* engine, const halay_handle* handles, uint32_t n, int64_t timeout_ms) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    if (n > 0) HALAY_RETURN_IF_ERROR(required(handles, "handles"));
    return engine->engine.wait_many(std::span(handles, n), timeout_ms);
  });
}

halay_status halay_next_completed(halay_engine* engine, halay_handle* out, uint32_t capacity, uint32_t* count,
                                  int64_t timeout_ms) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    HALAY_RETURN_IF_ERROR(required(count, "count"));
    HALAY_TRY(const size_t completed, engine->engine.next_completed(std::span(out, capacity), timeout_ms));
    *count = static_cast<uint32_t>(completed);
    return {};
  });
}

halay_status halay_get_result(halay_engine* engine, halay_handle handle, halay_result* out) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(out, "out"));
    HALAY_RETURN_IF_ERROR(has_size(out->struct_size, sizeof(halay_result), "halay_result"));
    return engine->engine.with_done(handle, [&](halay::engine::Operation& operation) -> Status {
      const halay::engine::OperationResult& result = operation.result;
      out->data = result.data;
      out->size_bytes = result.size_bytes;
      out->dtype = static_cast<int32_t>(result.dtype);
      out->dim_count = static_cast<int32_t>(result.shape.dim_count());
      std::ranges::copy(result.shape.dims(), out->shape);
      out->received_splits = result.received_splits.data();
      out->received_split_count = static_cast<int32_t>(result.received_splits.size());
      out->last_joined = result.last_joined;
      return {};
    });
  });
}

void halay_release(halay_engine* engine, halay_handle handle) {
  if (engine != nullptr && !halay::capi::g_forked.load(std::memory_order_relaxed)) engine->engine.release(handle);
}

halay_status halay_detach_result(halay_engine* engine, halay_handle handle, void** memory) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(memory, "memory"));
    return engine->engine.with_done(handle, [&](halay::engine::Operation& operation) -> Status {
      if (operation.owned.data() == nullptr)
        return Status::invalid_argument("the result lies in the caller's own output");
      *memory = operation.owned.detach();
      return {};
    });
  });
}

void halay_memory_free(void* memory) { halay::memory::OwnedBuffer::free_detached(memory); }

halay_status halay_timeline_start(halay_engine* engine, const char* path, int32_t mark_cycles) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(path, "path"));
    return engine->engine.start_timeline(path, mark_cycles != 0);
  });
}

halay_status halay_timeline_stop(halay_engine* engine) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return engine->engine.stop_timeline();
  });
}

halay_status halay_stats(halay_engine* engine, char* buffer, uint64_t capacity, uint64_t* size) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return give_text(engine->engine.stats(), buffer, capacity, size);
  });
}

halay_status halay_recorder_dump(halay_engine* engine, char* buffer, uint64_t capacity, uint64_t* size) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    return give_text(engine->engine.recorder_dump(), buffer, capacity, size);
  });
}

halay_status halay_config_get(halay_engine* engine, const char* name, char* buffer, uint64_t capacity, uint64_t* size) {
  return guarded([&]() -> Status {
    HALAY_RETURN_IF_ERROR(required(engine, "engine"));
    HALAY_RETURN_IF_ERROR(required(name, "name"));
    HALAY_TRY(const std::string value, halay::knob_value(engine->engine.config(), name));
    return give_text(value, buffer, capacity, size);
  });
}

}  // extern "C"
