// The kernels compiled for CPUs with avx512; flags are in src/CMakeLists.txt.
#define HALAY_MATH_SET avx512
#define HALAY_MATH_NAME "avx512"
#define HALAY_MATH_BYTES 64
#include "math/internal/kernels.inc"
