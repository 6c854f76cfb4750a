/* How halay's raw collectives and their peers are timed: the same code on both sides, C and C++.
 * A sample is the mean of `calls` calls in a row; a size gets samples until its time is used up. */
#ifndef HALAY_BENCH_MEASURE_H_
#define HALAY_BENCH_MEASURE_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEASURE_MAX_SIZES 32
#define MEASURE_MAX_SAMPLES 400

typedef struct measure_plan {
  int ranks;
  size_t sizes[MEASURE_MAX_SIZES];
  int size_count;
  double seconds; /* for each size */
} measure_plan;

typedef struct measure_samples {
  double us[MEASURE_MAX_SAMPLES];
  int count;
} measure_samples;

static inline double measure_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Arguments: ranks, seconds for each size, sizes in bytes. */
static inline int measure_parse(int argc, char** argv, measure_plan* plan) {
  if (argc < 4 || argc - 3 > MEASURE_MAX_SIZES) {
    fprintf(stderr, "usage: %s ranks seconds bytes...\n", argv[0]);
    return 0;
  }
  plan->ranks = atoi(argv[1]);
  plan->seconds = atof(argv[2]);
  plan->size_count = 0;
  for (int i = 3; i < argc; ++i) plan->sizes[plan->size_count++] = (size_t)strtoull(argv[i], NULL, 10);
  return 1;
}

/* Calls a sample, so that it lasts at least 50 us; `once` is the time of one call, agreed on all ranks. */
static inline int measure_calls(double once) {
  const double calls = 50e-6 / (once > 1e-9 ? once : 1e-9);
  return calls < 1 ? 1 : calls > 1000 ? 1000 : (int)calls;
}
static inline int measure_sample_count(double seconds, double once, int calls) {
  const double count = seconds / (once * calls);
  return count < 5 ? 5 : count > MEASURE_MAX_SAMPLES ? MEASURE_MAX_SAMPLES : (int)count;
}

/* Both buffers, as new: every page there and in its owner's cache as far as it fits. */
static inline void measure_touch(float* input, float* output, size_t count, int rank) {
  for (size_t i = 0; i < count; ++i) input[i] = (float)((i + 7 * (size_t)rank) % 1000);
  memset(output, 0, count * sizeof(float));
}
static inline int measure_check(const float* output, size_t count, int ranks) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += (float)((i + 7 * (size_t)rank) % 1000);
    if (output[i] != sum) return 0;
  }
  return 1;
}

static inline void measure_print(const char* what, size_t bytes, const measure_samples* samples) {
  printf("{\"what\": \"%s\", \"bytes\": %zu, \"us\": [", what, bytes);
  for (int i = 0; i < samples->count; ++i) printf("%s%.4f", i ? ", " : "", samples->us[i]);
  printf("]}\n");
  fflush(stdout);
}

#endif /* HALAY_BENCH_MEASURE_H_ */
