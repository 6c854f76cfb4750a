// What the checker takes for an element, and what each operation must give. Private to this room.
// Thread: any (values).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "collective/plan.h"

namespace halay::collective {

enum class Form : uint8_t { none, raw, partial, result };
std::string_view name_of(Form form);

struct Value {
  uint64_t parts = 0;  // sum of a random number for each contribution: names the multiset
  uint64_t tree = 0;   // names the association
  uint32_t chain = 0;  // messages and hand-overs that it went through
  Form form = Form::none;
};

// Element `e` of the input of `member`.
Value raw_value(size_t operation, size_t member, size_t e);
Value merged(const Value& left, const Value& right);

// What the outputs must be; `tree` is the canonical one.
class Wanted {
 public:
  Wanted(const Problem& problem, size_t operation);
  Value of(int member, size_t e) const;

 private:
  Problem problem_;
  size_t operation_;
  std::vector<Value> reduced_;  // of the elements of all inputs, where something is reduced
};

size_t input_count(const Problem& problem, int member);
size_t output_count(const Problem& problem, int member);
bool is_canonical(std::string_view algorithm, OpKind kind);

// splitmix64: the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  uint64_t state_;
};

}  // namespace halay::collective
