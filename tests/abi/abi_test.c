/* Pins what callers compiled against: sizes, offsets and numbers of the C ABI. C11. A change here breaks somebody's
 * binary: fields are added at the end (then a size changes, and struct_size tells), numbers are only ever added. */
#include <halay/halay.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "size of " #type)
#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), "offset of " #type "." #field)
#define NUMBER(constant, number) _Static_assert((constant) == (number), #constant)

SIZE(halay_engine_options, 16);
AT(halay_engine_options, struct_size, 0);
AT(halay_engine_options, settings, 8);
SIZE(halay_bytes, 16);
AT(halay_bytes, data, 0);
AT(halay_bytes, size_bytes, 8);
SIZE(halay_world, 40);
AT(halay_world, struct_size, 0);
AT(halay_world, rank, 8);
AT(halay_world, size, 12);
AT(halay_world, local_rank, 16);
AT(halay_world, local_size, 20);
AT(halay_world, cross_rank, 24);
AT(halay_world, cross_size, 28);
AT(halay_world, homogeneous, 32);
SIZE(halay_request, 128);
AT(halay_request, struct_size, 0);
AT(halay_request, kind, 8);
AT(halay_request, dtype, 12);
AT(halay_request, reduce_op, 16);
AT(halay_request, root_rank, 20);
AT(halay_request, process_set, 24);
AT(halay_request, name, 28);
AT(halay_request, flags, 32);
AT(halay_request, divisor, 36);
AT(halay_request, prescale, 40);
AT(halay_request, postscale, 48);
AT(halay_request, shape, 56);
AT(halay_request, dim_count, 64);
AT(halay_request, device, 68);
AT(halay_request, device_index, 72);
AT(halay_request, split_count, 76);
AT(halay_request, splits, 80);
AT(halay_request, input, 88);
AT(halay_request, output, 96);
AT(halay_request, output_bytes, 104);
AT(halay_request, stream, 112);
AT(halay_request, ready_event, 120);
SIZE(halay_result, 304);
AT(halay_result, struct_size, 0);
AT(halay_result, data, 8);
AT(halay_result, size_bytes, 16);
AT(halay_result, dtype, 24);
AT(halay_result, dim_count, 28);
AT(halay_result, shape, 32);
AT(halay_result, received_splits, 288);
AT(halay_result, received_split_count, 296);
AT(halay_result, last_joined, 300);

NUMBER(HALAY_OK, 0);
NUMBER(HALAY_INVALID_ARGUMENT, 1);
NUMBER(HALAY_NOT_INITIALIZED, 2);
NUMBER(HALAY_TIMEOUT, 3);
NUMBER(HALAY_MISMATCH, 4);
NUMBER(HALAY_STALLED, 5);
NUMBER(HALAY_UNSUPPORTED, 6);
NUMBER(HALAY_NO_MEMORY, 7);
NUMBER(HALAY_PEER_LOST, 8);
NUMBER(HALAY_ABORTED, 9);
NUMBER(HALAY_INTERNAL, 10);
NUMBER(HALAY_DUPLICATE_NAME, 11);
NUMBER(HALAY_NOT_A_MEMBER, 12);
NUMBER(HALAY_REQUEST_URGENT, 1);
NUMBER(HALAY_REQUEST_REPEATABLE, 2);
NUMBER(HALAY_DEVICE_CPU, 0);
NUMBER(HALAY_DEVICE_CUDA, 1);
NUMBER(HALAY_ABI_VERSION, 1);
SIZE(halay_status, 4);
SIZE(halay_handle, 8);
SIZE(halay_name, 4);
SIZE(halay_process_set, 4);

struct row {
  const char* table;
  const char* name;
  int64_t number;
};

/* In the order of the tables. */
static const struct row rows[] = {
    {"dtype", "uint8", 0},
    {"dtype", "int8", 1},
    {"dtype", "uint16", 2},
    {"dtype", "int16", 3},
    {"dtype", "int32", 4},
    {"dtype", "int64", 5},
    {"dtype", "float16", 6},
    {"dtype", "float32", 7},
    {"dtype", "float64", 8},
    {"dtype", "bool8", 9},
    {"dtype", "bfloat16", 10},
    {"dtype", "uint32", 11},
    {"dtype", "uint64", 12},
    {"op_kind", "allreduce", 0},
    {"op_kind", "allgather", 1},
    {"op_kind", "broadcast", 2},
    {"op_kind", "alltoall", 3},
    {"op_kind", "reducescatter", 4},
    {"op_kind", "barrier", 5},
    {"op_kind", "join", 6},
    {"reduce_op", "average", 0},
    {"reduce_op", "sum", 1},
    {"reduce_op", "min", 3},
    {"reduce_op", "max", 4},
    {"reduce_op", "product", 5},
    {"status", "ok", 0},
    {"status", "invalid_argument", 1},
    {"status", "not_initialized", 2},
    {"status", "timeout", 3},
    {"status", "mismatch", 4},
    {"status", "stalled", 5},
    {"status", "unsupported", 6},
    {"status", "no_memory", 7},
    {"status", "peer_lost", 8},
    {"status", "aborted", 9},
    {"status", "internal", 10},
    {"status", "duplicate_name", 11},
    {"status", "not_a_member", 12},
};

static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds) {
    ++failures;
    fprintf(stderr, "does not hold: %s\n", what);
  }
}

static void check_row(const struct row* row, uint32_t index) {
  const char* name = "";
  int64_t number = -1;
  const halay_status status = halay_enum_table(row->table, index, &name, &number);
  if (status != HALAY_OK || strcmp(name, row->name) != 0 || number != row->number) {
    ++failures;
    fprintf(stderr, "%s[%u]: status %d, '%s' = %lld; pinned: '%s' = %lld\n", row->table, (unsigned)index, (int)status,
            name, (long long)number, row->name, (long long)row->number);
  }
}

int main(void) {
  const size_t row_count = sizeof(rows) / sizeof(rows[0]);
  uint32_t index = 0;
  for (size_t i = 0; i < row_count; ++i) {
    index = i > 0 && strcmp(rows[i].table, rows[i - 1].table) == 0 ? index + 1 : 0;
    check_row(&rows[i], index);
    if (i + 1 == row_count || strcmp(rows[i].table, rows[i + 1].table) != 0) {
      const char* name;
      int64_t number;
      expect(halay_enum_table(rows[i].table, index + 1, &name, &number) != HALAY_OK,
             "a table ends with its last pinned row");
    }
  }
  expect(halay_abi_version() == HALAY_ABI_VERSION, "the library's version is the header's");
  expect(halay_version() != NULL && halay_version()[0] != '\0', "the library has a version");

  halay_engine* engine = NULL;
  expect(halay_engine_create(NULL, &engine) == HALAY_OK && engine != NULL, "an engine needs no options");
  halay_world world;
  memset(&world, 0x55, sizeof(world));
  world.struct_size = sizeof(world);
  expect(halay_world_info(engine, &world) == HALAY_NOT_INITIALIZED, "there is no world before start");
  expect(world.rank == 0x55555555, "a failed call writes no output");
  expect(halay_last_error()[0] != '\0', "a failure has a text");
  halay_engine_destroy(engine);
  return failures == 0 ? 0 : 1;
}
