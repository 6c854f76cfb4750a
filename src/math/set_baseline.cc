// The kernels compiled for what every CPU of this architecture has; flags are in src/CMakeLists.txt.
#define HALAY_MATH_SET baseline
#define HALAY_MATH_NAME "baseline"
#define HALAY_MATH_BYTES 16
#include "math/internal/kernels.inc"
