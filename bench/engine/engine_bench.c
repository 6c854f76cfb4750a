/* Times the way through the engine by the C ABI: halay_submit and halay_wait of one allreduce (float32 sum) with a
 * known name, blocking, by ranks that are forked here and find each other through shared memory. One JSON line a size.
 */
#define _DEFAULT_SOURCE 1 /* clock_gettime, MAP_ANONYMOUS */

#include <halay/halay.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../measure.h"

#define MAX_RANKS 64
#define ADDRESS_BYTES 16384

typedef struct card {
  _Atomic uint64_t size_bytes; /* 0: not written yet */
  unsigned char address[ADDRESS_BYTES];
} card;

static void must(halay_status status, const char* what) {
  if (status == HALAY_OK) return;
  fprintf(stderr, "%s: %s\n", what, halay_last_error());
  _exit(4);
}

static halay_engine* start(int rank, int size, card* cards) {
  halay_engine* engine = NULL;
  halay_engine_options options = {.struct_size = sizeof(options)};
  must(halay_engine_create(&options, &engine), "create");
  halay_bytes mine;
  must(halay_engine_address(engine, &mine), "address");
  if (mine.size_bytes > ADDRESS_BYTES) _exit(5);
  memcpy(cards[rank].address, mine.data, mine.size_bytes);
  atomic_store(&cards[rank].size_bytes, mine.size_bytes);
  halay_bytes all[MAX_RANKS];
  for (int peer = 0; peer < size; ++peer) {
    while (atomic_load(&cards[peer].size_bytes) == 0) sched_yield();
    all[peer].data = cards[peer].address;
    all[peer].size_bytes = atomic_load(&cards[peer].size_bytes);
  }
  must(halay_engine_start(engine, rank, size, all), "start");
  return engine;
}

static void allreduce(halay_engine* engine, halay_name name, int32_t op, const float* input, float* output,
                      int64_t count) {
  halay_request request = {.struct_size = sizeof(request)};
  request.kind = 0;  /* allreduce */
  request.dtype = 7; /* float32 */
  request.reduce_op = op;
  request.name = name;
  request.flags = HALAY_REQUEST_URGENT;
  request.prescale = 1;
  request.postscale = 1;
  request.shape = &count;
  request.dim_count = 1;
  request.input = input;
  request.output = output;
  request.output_bytes = (uint64_t)count * sizeof(float);
  halay_handle handle = 0;
  must(halay_submit(engine, &request, 1, &handle), "submit");
  must(halay_wait(engine, handle, -1), "wait");
  halay_release(engine, handle);
}

enum { SUM = 1, MAX = 4 };

/* The time of one call as the slowest rank sees it, after warming up; the same on all. */
static double agreed_once(halay_engine* engine, const halay_name* names, const float* input, float* output,
                          int64_t count) {
  float slowest = 0;
  for (int i = 0; i < 200 && (i < 3 || slowest < 1e-4f); ++i) {
    const double begin = measure_now();
    allreduce(engine, names[0], SUM, input, output, count);
    const float time = (float)(measure_now() - begin);
    allreduce(engine, names[1], MAX, &time, &slowest, 1);
  }
  return slowest;
}

static int run_rank(int rank, const measure_plan* plan, card* cards) {
  halay_engine* engine = start(rank, plan->ranks, cards);
  static measure_samples samples;
  int right = 1;
  for (int s = 0; s < plan->size_count; ++s) {
    const size_t count = plan->sizes[s] / sizeof(float);
    char text[64];
    halay_name names[2];
    snprintf(text, sizeof text, "bench/%zu", plan->sizes[s]);
    must(halay_name_register(engine, text, &names[0]), "name");
    must(halay_name_register(engine, "bench/time", &names[1]), "name");
    float* input = malloc(plan->sizes[s]);
    float* output = malloc(plan->sizes[s]);
    measure_touch(input, output, count, rank);
    const double time = agreed_once(engine, names, input, output, (int64_t)count);
    const int calls = measure_calls(time);
    samples.count = measure_sample_count(plan->seconds, time, calls);
    for (int i = 0; i < samples.count; ++i) {
      const double begin = measure_now();
      for (int call = 0; call < calls; ++call) allreduce(engine, names[0], SUM, input, output, (int64_t)count);
      samples.us[i] = (measure_now() - begin) / calls * 1e6;
    }
    right = right && measure_check(output, count, plan->ranks);
    if (rank == 0) measure_print("engine", plan->sizes[s], &samples);
    free(input);
    free(output);
  }
  halay_engine_shutdown(engine);
  halay_engine_destroy(engine);
  if (!right) fprintf(stderr, "rank %d: wrong sum\n", rank);
  return right ? 0 : 1;
}

int main(int argc, char** argv) {
  measure_plan plan;
  if (!measure_parse(argc, argv, &plan) || plan.ranks < 1 || plan.ranks > MAX_RANKS) return 2;
  card* cards =
      mmap(NULL, sizeof(card) * (size_t)plan.ranks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (cards == MAP_FAILED) return 3;
  for (int rank = 1; rank < plan.ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) _exit(run_rank(rank, &plan, cards));
  }
  int worst = run_rank(0, &plan, cards);
  for (int rank = 1; rank < plan.ranks; ++rank) {
    int status = 0;
    if (wait(&status) < 0) return 3;
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    worst = worst > result ? worst : result;
  }
  return worst;
}
