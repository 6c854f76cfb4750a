// The enumerations of the .def tables, with their names and properties.
// Thread: any (values).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace halay {

enum class DType : uint8_t {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) name = number,
#include "types/dtype.def"
#undef HALAY_DTYPE
};

enum class DTypeKind : uint8_t { integer, floating, boolean };
enum class AverageRule : uint8_t { exact, truncate, error };

enum class OpKind : uint8_t {
#define HALAY_OP(name, number, reduces, root, output, shapes, fusable, cached) name = number,
#include "types/op_kind.def"
#undef HALAY_OP
};

enum class OutputRule : uint8_t { same, concat, scattered, exchanged, none };
enum class ShapeRule : uint8_t { equal, rows, none };

struct OpTraits {
  bool reduces;
  bool has_root;
  OutputRule output;
  ShapeRule shapes;
  bool fusable;
  bool cached;
};

enum class ReduceOp : uint8_t {
#define HALAY_REDUCE_OP(name, number, on_bool) name = number,
#include "types/reduce_op.def"
#undef HALAY_REDUCE_OP
};

// What Average divides by while some ranks have joined: all members (Horovod's), or those still active.
enum class Divisor : uint8_t { world = 0, active = 1 };

std::string_view name_of(DType dtype);
std::string_view name_of(OpKind kind);
std::string_view name_of(ReduceOp op);

// From a number that came from outside (C ABI, wire); nothing if no row has it.
std::optional<DType> dtype_from_number(int64_t number);
std::optional<OpKind> op_kind_from_number(int64_t number);
std::optional<ReduceOp> reduce_op_from_number(int64_t number);

size_t bytes_of(DType dtype);
DTypeKind kind_of(DType dtype);
DType accumulator_of(DType dtype);
AverageRule average_rule_of(DType dtype);
// float16 and bfloat16: the accumulator is wider than what users hold.
inline bool widens(DType dtype) { return accumulator_of(dtype) != dtype; }

const OpTraits& traits_of(OpKind kind);

}  // namespace halay
