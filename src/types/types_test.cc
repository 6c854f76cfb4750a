#include <gtest/gtest.h>

#include "types/enums.h"
#include "types/shape.h"

namespace halay {
namespace {

TEST(Enums, FindEveryRowByItsNumberAndNoOther) {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) \
  EXPECT_EQ(dtype_from_number(number), DType::name);                 \
  EXPECT_EQ(bytes_of(DType::name), size_t{bytes});
#include "types/dtype.def"
#undef HALAY_DTYPE
#define HALAY_REDUCE_OP(name, number, on_bool) EXPECT_EQ(reduce_op_from_number(number), ReduceOp::name);
#include "types/reduce_op.def"
#undef HALAY_REDUCE_OP
  EXPECT_FALSE(dtype_from_number(-1) || dtype_from_number(13) || dtype_from_number(1LL << 40));
  EXPECT_FALSE(reduce_op_from_number(2));  // Adasum comes later
  EXPECT_FALSE(op_kind_from_number(7));
}

TEST(Enums, KeepHorovodsNumbers) {
  EXPECT_EQ(static_cast<int>(DType::float32), 7);
  EXPECT_EQ(static_cast<int>(DType::bool8), 9);
  EXPECT_EQ(static_cast<int>(ReduceOp::average), 0);
  EXPECT_EQ(static_cast<int>(ReduceOp::product), 5);
}

TEST(Enums, WidenOnlyTheNarrowFloats) {
  EXPECT_TRUE(widens(DType::float16) && widens(DType::bfloat16));
  EXPECT_FALSE(widens(DType::float32) || widens(DType::int8));
}

TEST(Shape, CountsElementsAndRows) {
  EXPECT_EQ(Shape().element_count(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).element_count(), 24);
  EXPECT_EQ((Shape{2, 3, 4}).row_elements(), 12);
  EXPECT_EQ((Shape{0, 3}).element_count(), 0);
}

TEST(Shape, ReadsAsPythonPrintsIt) {
  EXPECT_EQ(text_of(Shape()), "()");
  EXPECT_EQ(text_of(Shape{4}), "(4,)");
  EXPECT_EQ(text_of(Shape{2, 3}), "(2, 3)");
}

TEST(Shape, ComparesDimsAndTheirNumber) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2}) == (Shape{2, 1}));
}

}  // namespace
}  // namespace halay
