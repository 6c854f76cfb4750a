// The arithmetic of docs/arithmetic.md written a second time, one number at a time and as plainly as can be, for the
// tests. Thread: any (no state).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "math/kernels.h"

namespace halay::math::reference {

// A float of `kExponentBits` and `kFractionBits` in 16 bits.
template <int kExponentBits, int kFractionBits>
struct Short {
  uint16_t bits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kAllOnes = (1 << kExponentBits) - 1;

  float value() const {
    const int sign = bits >> 15, exponent = (bits >> kFractionBits) & kAllOnes,
              fraction = bits & ((1 << kFractionBits) - 1);
    double magnitude = 0;
    if (exponent == kAllOnes) {
      if (fraction != 0) return std::numeric_limits<float>::quiet_NaN();
      magnitude = std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
      magnitude = std::ldexp(fraction, 1 - kBias - kFractionBits);
    } else {
      magnitude = std::ldexp((1 << kFractionBits) + fraction, exponent - kBias - kFractionBits);
    }
    return static_cast<float>(sign ? -magnitude : magnitude);
  }

  static Short rounded(float from) {
    if (std::isnan(from)) return {static_cast<uint16_t>((kAllOnes << kFractionBits) | (1 << (kFractionBits - 1)))};
    const int sign = std::signbit(from) ? 0x8000 : 0;
    const double magnitude = std::fabs(static_cast<double>(from));
    if (magnitude == 0) return {static_cast<uint16_t>(sign)};
    int exponent = std::isinf(from) ? kBias + 1 : std::max(std::ilogb(magnitude), 1 - kBias);
    // Units in the last place, to nearest, ties to even.
    double units = std::isinf(from) ? 0 : std::nearbyint(std::ldexp(magnitude, kFractionBits - exponent));
    if (units == 2 << kFractionBits) {
      units /= 2;
      ++exponent;
    }
    if (exponent > kBias) return {static_cast<uint16_t>(sign | (kAllOnes << kFractionBits))};
    const int whole = static_cast<int>(units);
    const int field = whole < (1 << kFractionBits) ? 0 : exponent + kBias;
    return {static_cast<uint16_t>(sign | (field << kFractionBits) | (whole & ((1 << kFractionBits) - 1)))};
  }
};
using Half = Short<5, 10>;
using Brain = Short<8, 7>;
struct Bool {
  uint8_t value;
};

template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<Brain> {
  using type = float;
};
template <>
struct Accumulator<Bool> {
  using type = uint8_t;
};
template <class T>
using Acc = typename Accumulator<T>::type;

template <class A>
A one_nan(A value) {
  if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(value)) return std::numeric_limits<A>::quiet_NaN();
  }
  return value;
}

template <class T>
T cut(double value) {
  if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits)) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  return static_cast<T>(std::trunc(value));
}

template <class T>
Acc<T> load(T x, double prescale) {
  if constexpr (std::is_same_v<T, Bool>) {
    return x.value;
  } else if constexpr (std::is_integral_v<T>) {
    return prescale == 1.0 ? x : cut<T>(static_cast<double>(x) * prescale);
  } else if constexpr (std::is_floating_point_v<T>) {
    return prescale == 1.0 ? x : one_nan<T>(x * static_cast<T>(prescale));
  } else {
    return prescale == 1.0 ? x.value() : one_nan(x.value() * static_cast<float>(prescale));
  }
}

template <class T>
Acc<T> combine(ReduceOp op, Acc<T> l, Acc<T> r) {
  using A = Acc<T>;
  if constexpr (std::is_same_v<T, Bool>) {
    const bool both = l != 0 && r != 0, any = l != 0 || r != 0;
    return (op == ReduceOp::sum || op == ReduceOp::max) ? any : both;
  } else if constexpr (std::is_floating_point_v<A>) {
    if (std::isnan(l) || std::isnan(r)) return std::numeric_limits<A>::quiet_NaN();
    if (op == ReduceOp::sum) return one_nan(l + r);
    if (op == ReduceOp::product) return one_nan(l * r);
    const bool l_is_less = l < r || (l == r && std::signbit(l));
    return (op == ReduceOp::min) == l_is_less ? l : r;
  } else {
    if (op == ReduceOp::sum) return static_cast<A>(static_cast<uint64_t>(l) + static_cast<uint64_t>(r));
    if (op == ReduceOp::product) return static_cast<A>(static_cast<uint64_t>(l) * static_cast<uint64_t>(r));
    return (op == ReduceOp::min) == (l < r) ? l : r;
  }
}

template <class T>
T finish(Acc<T> x, double postscale, int64_t divisor) {
  using A = Acc<T>;
  if constexpr (std::is_same_v<T, Bool>) {
    return {x};
  } else if constexpr (std::is_integral_v<T>) {
    if (postscale != 1.0) x = cut<T>(static_cast<double>(x) * postscale);
    if (divisor == 1) return x;
    if constexpr (std::is_same_v<T, uint64_t>)
      return x / static_cast<uint64_t>(divisor);
    else
      return static_cast<T>(static_cast<int64_t>(x) / divisor);
  } else {
    if (postscale != 1.0) x = one_nan<A>(x * static_cast<A>(postscale));
    if (divisor != 1) x = one_nan<A>(x / static_cast<A>(divisor));
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return T::rounded(x);
  }
}

// The fold tree: the first p - 2^k pairs become one each, then neighbours are combined until one is left.
template <class T>
T reduce_all(ReduceOp op, const std::vector<T>& values, const Scale& scale) {
  std::vector<Acc<T>> row;
  size_t power = 1;
  while (power * 2 <= values.size()) power *= 2;
  const size_t folded = values.size() - power;
  for (size_t i = 0; i < values.size(); ++i) {
    const Acc<T> value = load(values[i], scale.prescale);
    if (i < 2 * folded && i % 2 == 1)
      row.back() = combine<T>(op, row.back(), value);
    else
      row.push_back(value);
  }
  while (row.size() > 1) {
    std::vector<Acc<T>> next;
    for (size_t i = 0; i < row.size(); i += 2) next.push_back(combine<T>(op, row[i], row[i + 1]));
    row = std::move(next);
  }
  return finish<T>(row[0], scale.postscale, scale.divisor);
}

// Calls f with a value of the type that holds a dtype.
template <class F>
auto with_type(DType dtype, F f) {
  switch (dtype) {
    case DType::uint8:
      return f(uint8_t{});
    case DType::int8:
      return f(int8_t{});
    case DType::uint16:
      return f(uint16_t{});
    case DType::int16:
      return f(int16_t{});
    case DType::uint32:
      return f(uint32_t{});
    case DType::int32:
      return f(int32_t{});
    case DType::uint64:
      return f(uint64_t{});
    case DType::int64:
      return f(int64_t{});
    case DType::float16:
      return f(Half{});
    case DType::bfloat16:
      return f(Brain{});
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::bool8:
      return f(Bool{});
  }
  return f(uint8_t{});
}

}  // namespace halay::math::reference
