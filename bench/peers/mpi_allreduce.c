/* The MPI twin of raw_bench: float32 sum, private buffers. Started by mpirun; see bench/raw.py. */
#define _DEFAULT_SOURCE 1 /* clock_gettime, MAP_ANONYMOUS */

#include <mpi.h>

#include "../measure.h"

/* The time of one call as the slowest rank sees it, after warming up; the same on all. */
static double agreed_once(float* input, float* output, int count) {
  double slowest = 0;
  for (int i = 0; i < 200 && (i < 3 || slowest < 1e-4); ++i) {
    const double begin = measure_now();
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double time = measure_now() - begin;
    /* All must do as many calls: no rank decides by its own clock. */
    MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  measure_plan plan;
  if (!measure_parse(argc, argv, &plan)) return 2;
  static measure_samples samples;
  int right = 1;
  for (int s = 0; s < plan.size_count; ++s) {
    const size_t bytes = plan.sizes[s], count = bytes / sizeof(float);
    float* input = malloc(bytes);
    float* output = malloc(bytes);
    measure_touch(input, output, count, rank);
    const double time = agreed_once(input, output, (int)count);
    const int calls = measure_calls(time);
    samples.count = measure_sample_count(plan.seconds, time, calls);
    for (int i = 0; i < samples.count; ++i) {
      const double begin = measure_now();
      for (int call = 0; call < calls; ++call) {
        MPI_Allreduce(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      }
      samples.us[i] = (measure_now() - begin) / calls * 1e6;
    }
    right = right && measure_check(output, count, size);
    if (rank == 0) measure_print("mpi", bytes, &samples);
    free(input);
    free(output);
  }
  MPI_Finalize();
  if (!right) fprintf(stderr, "rank %d: wrong sum\n", rank);
  return right ? 0 : 1;
}
