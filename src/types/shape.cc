#include "types/shape.h"

namespace halay {

std::string text_of(const Shape& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.dim_count(); ++i) {
    if (i) out += ", ";
    out += std::to_string(shape[i]);
  }
  out += shape.dim_count() == 1 ? ",)" : ")";
  return out;
}

}  // namespace halay
