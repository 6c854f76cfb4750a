#include "base/version.h"

namespace halay {

std::string_view version() { return HALAY_VERSION; }

}  // namespace halay
