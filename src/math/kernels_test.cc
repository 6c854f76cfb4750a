// Every instruction set that this CPU has against the plain reference, bit for bit.
#include "math/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <span>

#include "base/text.h"
#include "math/internal/dispatch.h"
#include "math/reference_for_test.h"

namespace halay::math {
namespace {

using reference::Acc;
using reference::with_type;

constexpr DType kDTypes[] = {
#define HALAY_DTYPE(name, number, bytes, kind, accumulator, average) DType::name,
#include "types/dtype.def"
#undef HALAY_DTYPE
};
static_assert(std::size(kDTypes) == kDTypeCount);
constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product};

std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> out;
  const UsableTables usable = usable_tables();
  for (size_t i = 0; usable.tables[i] != nullptr; ++i) out.push_back(usable.tables[i]);
  return out;
}

uint32_t seed() {
  static const uint32_t kSeed = [] {
    const uint32_t value = std::random_device{}();
    std::printf("[ seed     ] %u\n", value);
    return value;
  }();
  return kSeed;
}

// Numbers where arithmetic goes wrong, among ordinary and random ones.
template <class T>
T sample(std::mt19937_64& random) {
  const uint64_t bits = random();
  T out;
  if constexpr (std::is_same_v<T, reference::Bool>) {
    out.value = bits % 3 == 0 ? 0 : (bits % 5 == 0 ? 0x80 : 1);
  } else if constexpr (std::is_integral_v<T>) {
    constexpr T kEdges[] = {0, 1, 2, static_cast<T>(-1), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
    out = bits % 2 ? kEdges[(bits >> 8) % std::size(kEdges)] : static_cast<T>(bits >> 8);
  } else {
    using A = Acc<T>;
    using L = std::numeric_limits<A>;
    const A edges[] = {A{0},     -A{0},       A{1},       -A{1},           L::infinity(),    -L::infinity(),
                       L::max(), L::lowest(), L::min(),   L::denorm_min(), -L::denorm_min(), A{65504},
                       A{65520}, A(6.1e-5),   A(5.96e-8), L::quiet_NaN(),  A(1) / A(3),      A{16777216}};
    A value{};
    switch (bits % 4) {
      case 0:
        value = edges[(bits >> 8) % std::size(edges)];
        break;
      case 1:
        value = static_cast<A>(static_cast<int>(bits >> 40) % 1000) / A{8};
        break;
      default: {
        const uint64_t pattern = random();  // any bits at all, signalling NaNs too
        if constexpr (std::is_floating_point_v<T>)
          std::memcpy(&value, &pattern, sizeof value);
        else
          return T{static_cast<uint16_t>(pattern)};
      }
    }
    if constexpr (std::is_floating_point_v<T>)
      out = value;
    else
      out = T::rounded(value);
  }
  return out;
}

// An array of T that begins `offset` bytes past an aligned address, with guards around it.
template <class T>
class Array {
 public:
  Array(size_t n, size_t offset) : n_(n), offset_(offset), bytes_(n * sizeof(T) + offset + 2 * kGuard, kFill) {}
  Array(size_t n, size_t offset, std::mt19937_64& random) : Array(n, offset) {
    for (size_t i = 0; i < n; ++i) set(i, sample<T>(random));
  }
  void* data() { return bytes_.data() + kGuard + offset_; }
  T operator[](size_t i) { return at<T>(data(), i); }
  void set(size_t i, T value) { std::memcpy(static_cast<char*>(data()) + i * sizeof(T), &value, sizeof value); }
  bool guards_hold() const {
    const std::span<const unsigned char> all(bytes_);
    const auto untouched = [](unsigned char byte) { return byte == kFill; };
    return std::ranges::all_of(all.first(kGuard + offset_), untouched) &&
           std::ranges::all_of(all.last(kGuard), untouched);
  }
  template <class U>
  static U at(const void* p, size_t i) {
    U value;
    std::memcpy(&value, static_cast<const char*>(p) + i * sizeof(U), sizeof value);
    return value;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kFill = 0xa5;
  size_t n_, offset_;
  std::vector<unsigned char> bytes_;
};

template <class T>
std::string hex(T value) {
  std::array<unsigned char, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  std::string out = "0x";
  char digits[3];
  for (size_t i = sizeof(T); i-- > 0;) {
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    out += digits;
  }
  return out;
}

// A few lengths around every vector and tile length.
constexpr size_t kCounts[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 300};
constexpr size_t kOffsets[] = {0, 1, 4, 37};

class Kernels : public testing::TestWithParam<DType> {
 protected:
  size_t next_offset() { return kOffsets[random() % std::size(kOffsets)]; }
  std::mt19937_64 random{seed()};
};

TEST_P(Kernels, LoadGivesThePlainBitsInEverySet) {
  with_type(GetParam(), [&](auto type) {
    using T = decltype(type);
    for (const KernelTable* table : tables())
      for (const double prescale : {1.0, 0.5, -3.7, 1e30})
        for (const size_t n : kCounts) {
          const size_t offset = next_offset();
          Array<T> src(n, offset, random);
          Array<Acc<T>> dst(n, offset);
          load_with(*table, GetParam(), dst.data(), src.data(), n, prescale);
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(hex(dst[i]), hex(reference::load(src[i], prescale)))
                << table->name << " n " << n << " i " << i << " x " << hex(src[i]) << " prescale " << prescale;
          }
          ASSERT_TRUE(dst.guards_hold()) << table->name << " n " << n;
        }
  });
}

TEST_P(Kernels, FinishGivesThePlainBitsInEverySet) {
  with_type(GetParam(), [&](auto type) {
    using T = decltype(type);
    const Scale scales[] = {{1, 1, 1},       {1, 1, 2}, {1, 1, 4},   {1, 1, 64},   {1, 1, 128},  {1, 1, 256},
                            {1, 1, 1 << 15}, {1, 1, 3}, {1, 0.3, 1}, {1, -2.5, 7}, {1, 1e25, 1}, {1, 1, 1000}};
    for (const KernelTable* table : tables())
      for (const Scale& scale : scales)
        for (const size_t n : kCounts) {
          const size_t offset = next_offset();
          Array<Acc<T>> src(n, offset, random);
          Array<T> dst(n, offset);
          finish_with(*table, GetParam(), dst.data(), src.data(), n, scale);
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(hex(dst[i]), hex(reference::finish<T>(src[i], scale.postscale, scale.divisor)))
                << table->name << " n " << n << " i " << i << " x " << hex(src[i]) << " postscale " << scale.postscale
                << " divisor " << scale.divisor;
          }
          ASSERT_TRUE(dst.guards_hold()) << table->name << " n " << n;
        }
  });
}

class Accumulators : public Kernels {};

TEST_P(Accumulators, ReduceGivesThePlainBitsInEverySetAlsoInPlace) {
  with_type(GetParam(), [&](auto type) {
    using T = decltype(type);
    for (const KernelTable* table : tables())
      for (const ReduceOp op : kOps)
        for (const size_t n : kCounts)
          for (const int in_place : {0, 1, 2}) {
            const size_t offset = next_offset();
            Array<T> left(n, offset, random), right(n, 0, random), other(n, offset);
            Array<T> left_before = left, right_before = right;
            Array<T>& dst = in_place == 0 ? other : (in_place == 1 ? left : right);
            reduce_with(*table, GetParam(), op, dst.data(), left.data(), right.data(), n);
            for (size_t i = 0; i < n; ++i) {
              const T l = left_before[i], r = right_before[i];
              T expected;
              const Acc<T> combined = reference::combine<T>(op, reference::load(l, 1.0), reference::load(r, 1.0));
              std::memcpy(&expected, &combined, sizeof expected);
              ASSERT_EQ(hex(dst[i]), hex(expected)) << table->name << " " << name_of(op) << " n " << n << " i " << i
                                                    << " of " << hex(l) << ", " << hex(r);
            }
            ASSERT_TRUE(dst.guards_hold()) << table->name << " n " << n;
          }
  });
}

TEST_P(Kernels, ReduceAllEvaluatesTheFoldTreeInEverySet) {
  with_type(GetParam(), [&](auto type) {
    using T = decltype(type);
    const Scale scales[] = {{1, 1, 1}, {1, 1, 3}, {0.7, 1, 1}, {-1.5, 0.25, 2}};
    const size_t counts[] = {1, 17, 130, 300};
    std::vector<std::array<size_t, 2>> cases;  // sources, elements: every p up to 17, several tiles, and two large p
    for (size_t p = 1; p <= 17; ++p) cases.push_back({p, counts[p % std::size(counts)]});
    cases.push_back({3, 1025});
    cases.push_back({6, 2300});
    cases.push_back({64, 70});
    cases.push_back({100, 33});
    for (const KernelTable* table : tables())
      for (const auto& [p, n] : cases)
        for (const ReduceOp op : kOps) {
          const Scale& scale = scales[random() % std::size(scales)];
          const Stores stores = random() % 2 ? Stores::streaming : Stores::cached;
          std::vector<Array<T>> arrays;
          for (size_t s = 0; s < p; ++s) arrays.emplace_back(n, kOffsets[random() % std::size(kOffsets)], random);
          std::vector<T> expected;
          for (size_t i = 0; i < n; ++i) {
            std::vector<T> column;
            for (size_t s = 0; s < p; ++s) column.push_back(arrays[s][i]);
            expected.push_back(reference::reduce_all(op, column, scale));
          }
          std::vector<const void*> sources;
          for (auto& array : arrays) sources.push_back(array.data());
          Array<T> other(n, 1);
          const size_t in_place = random() % (p + 1);  // p: none
          Array<T>& dst = in_place == p ? other : arrays[in_place];
          reduce_all_with(*table, {GetParam(), op, sources.data(), p, scale, stores}, dst.data(), n);
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(hex(dst[i]), hex(expected[i]))
                << table->name << " " << name_of(op) << " p " << p << " n " << n << " i " << i << " prescale "
                << scale.prescale << " postscale " << scale.postscale << " divisor " << scale.divisor << " in place of "
                << in_place << (stores == Stores::streaming ? " streaming" : "");
          }
          ASSERT_TRUE(dst.guards_hold()) << table->name << " p " << p << " n " << n;
        }
  });
}

std::string name_of_param(const testing::TestParamInfo<DType>& info) { return std::string(name_of(info.param)); }
std::vector<DType> accumulators() {
  std::vector<DType> out;
  std::ranges::copy_if(kDTypes, std::back_inserter(out), [](DType dtype) { return !widens(dtype); });
  return out;
}
INSTANTIATE_TEST_SUITE_P(Every, Kernels, testing::ValuesIn(kDTypes), name_of_param);
INSTANTIATE_TEST_SUITE_P(Every, Accumulators, testing::ValuesIn(accumulators()), name_of_param);

template <class T>
void every_pattern_comes_back(DType dtype) {
  std::vector<uint16_t> patterns(65536), back(65536);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  for (const KernelTable* table : tables()) {
    std::vector<float> wide(65536);
    load_with(*table, dtype, wide.data(), patterns.data(), wide.size(), 1.0);
    finish_with(*table, dtype, back.data(), wide.data(), wide.size(), {});
    for (size_t i = 0; i < patterns.size(); ++i) {
      const float exact = T{patterns[i]}.value();
      ASSERT_EQ(hex(wide[i]), hex(exact)) << table->name << " pattern " << i;
      ASSERT_EQ(back[i], std::isnan(exact) ? T::rounded(exact).bits : patterns[i]) << table->name << " pattern " << i;
    }
  }
}

TEST(ShortFloats, EveryPatternOfFloat16ComesBack) { every_pattern_comes_back<reference::Half>(DType::float16); }
TEST(ShortFloats, EveryPatternOfBfloat16ComesBack) { every_pattern_comes_back<reference::Brain>(DType::bfloat16); }

template <class T>
void ties_go_to_even(DType dtype) {
  std::vector<float> from;
  const int end = T::kAllOnes << (dtype == DType::float16 ? 10 : 7);  // infinity
  for (int pattern = 0; pattern < end; ++pattern) {
    // Beyond the largest number the next step would be 2^(bias + 1).
    const float low = T{static_cast<uint16_t>(pattern)}.value();
    const double high =
        pattern + 1 < end ? T{static_cast<uint16_t>(pattern + 1)}.value() : std::ldexp(1.0, T::kBias + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    for (const float value : {middle, std::nextafterf(middle, 0.0f), std::nextafterf(middle, HUGE_VALF)}) {
      from.push_back(value);
      from.push_back(-value);
    }
  }
  std::vector<uint16_t> rounded(from.size());
  for (const KernelTable* table : tables()) {
    finish_with(*table, dtype, rounded.data(), from.data(), from.size(), {});
    for (size_t i = 0; i < from.size(); ++i) {
      ASSERT_EQ(rounded[i], T::rounded(from[i]).bits) << table->name << " of " << hex(from[i]);
    }
  }
}

TEST(ShortFloats, EveryTieOfFloat16GoesToEven) { ties_go_to_even<reference::Half>(DType::float16); }
TEST(ShortFloats, EveryTieOfBfloat16GoesToEven) { ties_go_to_even<reference::Brain>(DType::bfloat16); }

TEST(ShortFloats, AreSummedWideAndRoundedOnce) {
  // 2048 + 1 + 1 + … stays 2048 if every step is rounded to float16.
  std::vector<uint16_t> big{reference::Half::rounded(2048).bits}, one{reference::Half::rounded(1).bits};
  const void* sources[] = {big.data(), one.data(), one.data(), one.data(),
                           one.data(), one.data(), one.data(), one.data()};
  uint16_t sum = 0;
  reduce_all(DType::float16, ReduceOp::sum, &sum, sources, 8, 1, {});
  EXPECT_EQ(reference::Half{sum}.value(), 2056.0f);  // 2055 is a tie between 2054 and 2056
  reduce_all(DType::float16, ReduceOp::sum, &sum, sources, 8, 1, {.divisor = 5});
  EXPECT_EQ(reference::Half{sum}.value(), 411.0f);  // 2055 / 5; the rounded sum would give 411.25
}

TEST(Integers, AverageTruncatesTowardZero) {
  const int32_t a[] = {-7, 7, 1, -1}, b[] = {0, 0, 0, 0};
  const void* sources[] = {a, b};
  int32_t mean[4];
  reduce_all(DType::int32, ReduceOp::average, mean, sources, 2, 4, {.divisor = 2});
  EXPECT_THAT(mean, testing::ElementsAre(-3, 3, 0, 0));
}

TEST(Integers, DivideExactlyAtTheEdges) {
  // One less than a multiple is where a quotient in floating point would jump.
  std::vector<uint32_t> x;
  for (uint32_t divisor = 3; divisor < 100'000; divisor += 7) {
    const uint32_t multiple = 0xffffffffu / divisor * divisor;
    x = {multiple - 1, multiple, multiple + 1, divisor - 1, divisor, 0xffffffffu};
    std::vector<uint32_t> quotient(x.size());
    for (const KernelTable* table : tables()) {
      finish_with(*table, DType::uint32, quotient.data(), x.data(), x.size(), {.divisor = divisor});
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(quotient[i], x[i] / divisor) << table->name << " " << x[i] << "/" << divisor;
    }
  }
}

#if defined(__x86_64__)
TEST(FloatMode, OfTheCallingThreadChangesNoBitAndIsGivenBack) {
  const float denormal = std::numeric_limits<float>::denorm_min() * 3;
  const float in[] = {denormal}, zero[] = {0};
  const void* sources[] = {in, zero};
  float out = -1;
  const unsigned before = __builtin_ia32_stmxcsr();
  const unsigned flush_and_round_up = before | 0x8040u | 0x4000u;
  __builtin_ia32_ldmxcsr(flush_and_round_up);
  reduce_all(DType::float32, ReduceOp::sum, &out, sources, 2, 1, {});
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(hex(out), hex(denormal));
  EXPECT_EQ(after & 0xe040u, flush_and_round_up & 0xe040u);
}
#endif

TEST(MinAndMax, AreTheSameInAnyOrder) {
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    const float values[] = {-0.0f, 0.0f, std::numeric_limits<float>::signaling_NaN(), -std::nanf("7"), 1.0f};
    for (const float a : values)
      for (const float b : values) {
        float ab, ba;
        reduce(DType::float32, op, &ab, &a, &b, 1);
        reduce(DType::float32, op, &ba, &b, &a, 1);
        EXPECT_EQ(hex(ab), hex(ba)) << name_of(op) << " of " << a << ", " << b;
        EXPECT_EQ(std::isnan(ab), std::isnan(a) || std::isnan(b));
      }
  }
}

TEST(Copy, MovesEveryByteWhateverTheAlignment) {
  std::mt19937_64 random(seed());
  for (const Stores stores : {Stores::cached, Stores::streaming})
    for (const size_t n : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{1000}, size_t{5000}})
      for (const size_t offset : {0, 1, 63}) {
        Array<uint8_t> src(n, 0, random), dst(n, offset);
        copy(dst.data(), src.data(), n, stores);
        EXPECT_EQ(n == 0 ? 0 : std::memcmp(dst.data(), src.data(), n), 0);
        EXPECT_TRUE(dst.guards_hold());
      }
}

TEST(Copy, ChoosesStoresByTheSizeOfTheMessage) {
  EXPECT_EQ(stores_for(kStreamingBytes - 1), Stores::cached);
  EXPECT_EQ(stores_for(kStreamingBytes), Stores::streaming);
}

TEST(InstructionSet, IsTheLastThatTheCpuHas) {
  EXPECT_EQ(instruction_set(), tables().back()->name);
  EXPECT_STREQ(tables().front()->name, "baseline");
}

TEST(CheckArithmetic, FollowsTheTableOfDTypes) {
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : kOps) {
      EXPECT_TRUE(check_arithmetic(dtype, op, 1, 1, IntAverage::error).ok()) << name_of(dtype) << " " << name_of(op);
    }
    const Status lenient = check_arithmetic(dtype, ReduceOp::average, 1, 1, IntAverage::truncate);
    const Status strict = check_arithmetic(dtype, ReduceOp::average, 1, 1, IntAverage::error);
    EXPECT_EQ(lenient.ok(), average_rule_of(dtype) != AverageRule::error) << name_of(dtype);
    EXPECT_EQ(strict.ok(), average_rule_of(dtype) == AverageRule::exact) << name_of(dtype);
    const Status scaled = check_arithmetic(dtype, ReduceOp::sum, 0.5, 1, IntAverage::truncate);
    EXPECT_EQ(scaled.ok(), dtype != DType::bool8) << name_of(dtype);
  }
}

TEST(CheckArithmetic, SaysWhatIsWrongInWords) {
  EXPECT_EQ(check_arithmetic(DType::bool8, ReduceOp::average, 1, 1, IntAverage::truncate).text(),
            "average of bool8 has no meaning; sum and max are or, min and product are and");
  EXPECT_EQ(check_arithmetic(DType::int32, ReduceOp::average, 1, 1, IntAverage::error).text(),
            "average of int32 would be truncated, and HALAY_INT_AVERAGE=error refuses that; use sum");
  EXPECT_EQ(check_arithmetic(DType::bool8, ReduceOp::sum, 1, 2, IntAverage::truncate).text(),
            "prescale 1, postscale 2: a scale of bool8 has no meaning");
  const Status infinite = check_arithmetic(DType::float32, ReduceOp::sum, HUGE_VAL, 1, IntAverage::truncate);
  EXPECT_EQ(infinite.code(), Code::invalid_argument);
  EXPECT_EQ(infinite.text(), "prescale inf, postscale 1: both must be finite");
}

}  // namespace
}  // namespace halay::math
