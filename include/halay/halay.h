/* The public C ABI of halay: everything an adapter, a test or another language sees. C11.
 *
 * 1. Every struct begins with `struct_size`: set it to sizeof(the struct). Fields are only ever added at the end.
 * 2. Enumerations are fixed numbers, the same as in the tables .def files below src; halay_enum_table() lists them.
 * 3. A function returns a halay_status; 0 is success. The text of this thread's last failure: halay_last_error().
 * 4. No function throws, prints, keeps a pointer after it returns (but tensor buffers until the operation completes, or
 * is released), or blocks without a timeout. Timeouts are in milliseconds; negative waits for the operation's own
 * deadline.
 * 5. Outputs are written only on success.
 * 6. Any thread may call any function at any time, but halay_engine_destroy, which nobody may overtake. In a forked
 * child every call fails with HALAY_NOT_INITIALIZED.
 */
#ifndef HALAY_HALAY_H_
#define HALAY_HALAY_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HALAY_API __attribute__((visibility("default")))
#else
#define HALAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HALAY_ABI_VERSION 1

/* How a call ended; see src/base/status.def for how much is broken. */
typedef int32_t halay_status;
enum {
  HALAY_OK = 0,
  HALAY_INVALID_ARGUMENT = 1,
  HALAY_NOT_INITIALIZED = 2,
  HALAY_TIMEOUT = 3,
  HALAY_MISMATCH = 4,
  HALAY_STALLED = 5,
  HALAY_UNSUPPORTED = 6,
  HALAY_NO_MEMORY = 7,
  HALAY_PEER_LOST = 8,
  HALAY_ABORTED = 9,
  HALAY_INTERNAL = 10,
  HALAY_DUPLICATE_NAME = 11,
  HALAY_NOT_A_MEMBER = 12
};

typedef struct halay_engine halay_engine;
typedef uint64_t halay_handle;      /* one submitted operation; 0 is none */
typedef uint32_t halay_name;        /* a registered tensor name */
typedef uint32_t halay_process_set; /* 0 is the world */

HALAY_API uint32_t halay_abi_version(void);
HALAY_API const char* halay_version(void);
/* Text of the last failure on this thread, "" if none; valid until the next call on this thread. */
HALAY_API const char* halay_last_error(void);
/* Rank at fault in the last failure on this thread (the peer that was lost), or -1. */
HALAY_API int32_t halay_last_error_rank(void);
/* One row of an enumeration. table: "dtype", "op_kind", "reduce_op", "status". Fails past the last index. */
HALAY_API halay_status halay_enum_table(const char* table, uint32_t index, const char** name, int64_t* number);

/* ---- the engine ---- */

typedef struct halay_engine_options {
  uint64_t struct_size;
  /* Knobs that win over the environment: "HALAY_FUSION_THRESHOLD=0"; NULL-terminated, may be NULL. */
  const char* const* settings;
} halay_engine_options;

typedef struct halay_bytes {
  const void* data;
  uint64_t size_bytes;
} halay_bytes;

typedef struct halay_world {
  uint64_t struct_size;
  int32_t rank, size;
  int32_t local_rank, local_size;
  int32_t cross_rank, cross_size;
  int32_t homogeneous; /* the same local_size on all machines */
} halay_world;

/* Reads the environment once. INVALID_ARGUMENT names a bad setting, its value and what is allowed. */
HALAY_API halay_status halay_engine_create(const halay_engine_options* options, halay_engine** out);
/* The one out-of-band door: give these bytes to all other ranks by any store, and start with the bytes of all. */
HALAY_API halay_status halay_engine_address(halay_engine* engine, halay_bytes* out);
/* Builds the world: addresses[r] is rank r's, its own included. Deadline: HALAY_START_TIMEOUT. */
HALAY_API halay_status halay_engine_start(halay_engine* engine, int32_t rank, int32_t size,
                                          const halay_bytes* addresses);
/* The same through the launcher's store, found by its variables (HALAY_RANK, HALAY_SIZE, HALAY_STORE); without any of
 * them a world of one. */
HALAY_API halay_status halay_engine_start_from_environment(halay_engine* engine);
/* Ends the world: says goodbye to the peers, fails what is pending. May be started again afterwards. */
HALAY_API halay_status halay_engine_shutdown(halay_engine* engine);
HALAY_API void halay_engine_destroy(halay_engine* engine);
HALAY_API halay_status halay_world_info(halay_engine* engine, halay_world* out);
/* Ends the world on all ranks with this reason. */
HALAY_API halay_status halay_abort(halay_engine* engine, const char* reason);

/* ---- process sets ---- */

/* Members only, each with the same ranks; waits until all have called (HALAY_START_TIMEOUT). */
HALAY_API halay_status halay_process_set_create(halay_engine* engine, const int32_t* ranks, int32_t count,
                                                halay_process_set* out);
/* Members only. Fails if operations of the set are in flight here. */
HALAY_API halay_status halay_process_set_destroy(halay_engine* engine, halay_process_set set);
/* Writes up to `capacity` ranks, the set's size and this rank's index in it (-1: not a member). */
HALAY_API halay_status halay_process_set_query(halay_engine* engine, halay_process_set set, int32_t* ranks,
                                               int32_t capacity, int32_t* size, int32_t* member);

/* ---- operations ---- */

/* The number of a tensor name; the same text gives the same number in this process. */
HALAY_API halay_status halay_name_register(halay_engine* engine, const char* name, halay_name* out);

enum {
  HALAY_REQUEST_URGENT = 1u,    /* a thread will wait for it at once: the decider shall not wait for company */
  HALAY_REQUEST_REPEATABLE = 2u /* the name may be in flight already: this one queues behind it, in order */
};
enum { HALAY_DEVICE_CPU = 0, HALAY_DEVICE_CUDA = 1 };

typedef struct halay_request {
  uint64_t struct_size;
  int32_t kind;      /* table op_kind */
  int32_t dtype;     /* table dtype */
  int32_t reduce_op; /* table reduce_op; kinds that reduce */
  int32_t root_rank; /* rank of the world; broadcast */
  halay_process_set process_set;
  halay_name name;
  uint32_t flags;
  int32_t divisor; /* 0: average divides by the size of the set, 1: by the ranks that have not joined */
  double prescale, postscale;
  const int64_t* shape;
  int32_t dim_count;
  int32_t device;
  int32_t device_index;
  int32_t split_count;
  const int64_t* splits; /* alltoall: rows for each member; NULL: equal parts */
  const void* input;     /* contiguous */
  void* output;          /* NULL: the engine owns the result, see halay_result. May equal input where shapes agree. */
  uint64_t output_bytes; /* room at `output` */
  void* stream;          /* device tensors: the caller's stream and its ready event */
  void* ready_event;
} halay_request;

/* Submits n tensors, all or nothing; out[i] is the handle of requests[i]. n > 1 makes them a group, decided together on
 * all ranks. Never blocks. DUPLICATE_NAME, NOT_A_MEMBER and INVALID_ARGUMENT queue nothing. */
HALAY_API halay_status halay_submit(halay_engine* engine, const halay_request* requests, uint32_t n, halay_handle* out);
/* This rank has no more data. Completes when every rank of the world has joined; its result is the last one's rank. */
HALAY_API halay_status halay_join(halay_engine* engine, halay_handle* out);
/* 1: a wait would not block. */
HALAY_API halay_status halay_poll(halay_engine* engine, halay_handle handle, int32_t* done);
/* Waits, driving the engine meanwhile. TIMEOUT leaves the operation alive. Else the operation's own status. */
HALAY_API halay_status halay_wait(halay_engine* engine, halay_handle handle, int64_t timeout_ms);
/* Waits for all; the first failure in order of `handles` is returned, after all have ended. */
HALAY_API halay_status halay_wait_many(halay_engine* engine, const halay_handle* handles, uint32_t n,
                                       int64_t timeout_ms);
/* Handles that completed since the last call, at least one unless TIMEOUT; for one completion thread a process. Only
 * operations submitted after the first call of this function are reported. */
HALAY_API halay_status halay_next_completed(halay_engine* engine, halay_handle* out, uint32_t capacity, uint32_t* count,
                                            int64_t timeout_ms);

typedef struct halay_result {
  uint64_t struct_size;
  void* data; /* the caller's output, or memory that lives until halay_release */
  uint64_t size_bytes;
  int32_t dtype;
  int32_t dim_count;
  int64_t shape[32];
  const int64_t* received_splits; /* alltoall: rows from each member; lives until halay_release */
  int32_t received_split_count;
  int32_t last_joined; /* join */
} halay_result;

/* After a successful wait. */
HALAY_API halay_status halay_get_result(halay_engine* engine, halay_handle handle, halay_result* out);
/* Gives the handle back (and the memory of an engine-owned result). An operation still in flight goes on; its buffers
 * must stay until then, so wait first. An unknown handle is ignored. */
HALAY_API void halay_release(halay_engine* engine, halay_handle handle);
/* Takes the result's memory out of the handle: it then lives, whatever becomes of handle and engine, until
 * halay_memory_free(memory). For zero-copy export (DLPack). Fails if the caller gave the output. */
HALAY_API halay_status halay_detach_result(halay_engine* engine, halay_handle handle, void** memory);
HALAY_API void halay_memory_free(void* memory);

/* ---- seeing ---- */

/* INVALID_ARGUMENT if the path cannot be written. Every rank writes its own file where `path` has "{rank}" or
 * HALAY_TIMELINE_ALL is set, else rank 0 alone. */
HALAY_API halay_status halay_timeline_start(halay_engine* engine, const char* path, int32_t mark_cycles);
HALAY_API halay_status halay_timeline_stop(halay_engine* engine);
/* Counters as "name value\n" lines; returns the needed size in *size (with the final 0), writes if it fits. */
HALAY_API halay_status halay_stats(halay_engine* engine, char* buffer, uint64_t capacity, uint64_t* size);
/* The last events kept in memory and what is in flight now, as text; sizes as halay_stats. */
HALAY_API halay_status halay_recorder_dump(halay_engine* engine, char* buffer, uint64_t capacity, uint64_t* size);
/* The value in force of a knob, as text; sizes as halay_stats. */
HALAY_API halay_status halay_config_get(halay_engine* engine, const char* name, char* buffer, uint64_t capacity,
                                        uint64_t* size);

#ifdef __cplusplus
}
#endif
#endif /* HALAY_HALAY_H_ */
