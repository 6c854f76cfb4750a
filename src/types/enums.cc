#include "types/enums.h"

#include "base/check.h"

namespace halay {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t bytes;
  DTypeKind kind;
  DType accumulator;
  AverageRule average;
};

constexpr DTypeRow kDTypes[] = {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) \
  {DType::name, #name, bytes, DTypeKind::kind, DType::accumulator, AverageRule::average},
#include "types/dtype.def"
#undef HALAY_DTYPE
};

struct OpRow {
  OpKind kind;
  std::string_view name;
  OpTraits traits;
};

constexpr OpRow kOps[] = {
#define HALAY_OP(name, number, reduces, root, output, shapes, fusable, cached) \
  {OpKind::name, #name, {reduces, root, OutputRule::output, ShapeRule::shapes, fusable, cached}},
#include "types/op_kind.def"
#undef HALAY_OP
};

struct ReduceOpRow {
  ReduceOp op;
  std::string_view name;
};

constexpr ReduceOpRow kReduceOps[] = {
#define HALAY_REDUCE_OP(name, number, on_bool) {ReduceOp::name, #name},
#include "types/reduce_op.def"
#undef HALAY_REDUCE_OP
};

const DTypeRow& row_of(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  HALAY_ASSERT(index < std::size(kDTypes) && kDTypes[index].dtype == dtype);
  return kDTypes[index];
}

const OpRow& row_of(OpKind kind) {
  const auto index = static_cast<size_t>(kind);
  HALAY_ASSERT(index < std::size(kOps) && kOps[index].kind == kind);
  return kOps[index];
}

}  // namespace

std::string_view name_of(DType dtype) { return row_of(dtype).name; }
std::string_view name_of(OpKind kind) { return row_of(kind).name; }
std::string_view name_of(ReduceOp op) {
  for (const ReduceOpRow& row : kReduceOps) {
    if (row.op == op) return row.name;
  }
  return "unknown";
}

std::optional<DType> dtype_from_number(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(std::size(kDTypes))) return std::nullopt;
  return static_cast<DType>(number);
}

std::optional<OpKind> op_kind_from_number(int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(std::size(kOps))) return std::nullopt;
  return static_cast<OpKind>(number);
}

std::optional<ReduceOp> reduce_op_from_number(int64_t number) {
  for (const ReduceOpRow& row : kReduceOps) {
    if (static_cast<int64_t>(row.op) == number) return row.op;
  }
  return std::nullopt;
}

size_t bytes_of(DType dtype) { return row_of(dtype).bytes; }
DTypeKind kind_of(DType dtype) { return row_of(dtype).kind; }
DType accumulator_of(DType dtype) { return row_of(dtype).accumulator; }
AverageRule average_rule_of(DType dtype) { return row_of(dtype).average; }
const OpTraits& traits_of(OpKind kind) { return row_of(kind).traits; }

}  // namespace halay
