// Shape: the dimensions of a tensor, kept inline so that a Request needs no allocation.
// Thread: any (value).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/check.h"

namespace halay {

class Shape {
 public:
  // A tensor with more dimensions is refused at the C ABI, with words.
  static constexpr size_t kMaxDims = 32;

  Shape() = default;  // 0-d: one element
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<uint8_t>(dims.size())) {
    HALAY_ASSERT(dims.size() <= kMaxDims);
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }
  Shape(const Shape& other) : Shape(other.dims()) {}
  Shape& operator=(const Shape& other) {
    rank_ = other.rank_;
    std::copy_n(other.dims_.begin(), rank_, dims_.begin());
    return *this;
  }

  std::span<const int64_t> dims() const { return {dims_.data(), rank_}; }
  size_t dim_count() const { return rank_; }
  int64_t operator[](size_t i) const { return dims_[i]; }
  void set_dim(size_t i, int64_t value) { dims_[i] = value; }
  bool operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }

  // Product of all dims, or of those after the first; both are 1 for a 0-d tensor. Overflow is checked where
  // a Shape comes in (C ABI, wire).
  int64_t element_count() const { return product(0); }
  int64_t row_elements() const { return product(1); }

 private:
  int64_t product(size_t from) const {
    int64_t count = 1;
    for (size_t i = from; i < rank_; ++i) count *= dims_[i];
    return count;
  }

  std::array<int64_t, kMaxDims> dims_;
  uint8_t rank_ = 0;
};

// "(2, 3)", "()" for 0-d, "(4,)" for 1-d: as Python prints it.
std::string text_of(const Shape& shape);

}  // namespace halay
