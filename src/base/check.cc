#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace halay {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "halay: internal error: %s does not hold (%s:%d); please report this line\n", condition, file,
               line);
  std::abort();
}

}  // namespace halay
