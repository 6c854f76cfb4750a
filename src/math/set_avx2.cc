// The kernels compiled for CPUs with avx2; flags are in src/CMakeLists.txt.
#define HALAY_MATH_SET avx2
#define HALAY_MATH_NAME "avx2"
#define HALAY_MATH_BYTES 32
#include "math/internal/kernels.inc"
