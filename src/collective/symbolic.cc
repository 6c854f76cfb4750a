#include "collective/symbolic.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace halay::collective {
namespace {

// Elements of an alltoall's input that no split names: every member has some, and nothing may touch them.
constexpr size_t kRowsLeftOver = 3;

uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

size_t sum_before(const std::vector<size_t>& counts, size_t end) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(end), size_t{0});
}

}  // namespace

std::string_view name_of(Form form) {
  constexpr std::string_view kNames[] = {"unwritten", "raw", "partial", "result"};
  return kNames[static_cast<size_t>(form)];
}

uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  return mix(state_);
}

Value raw_value(size_t operation, size_t member, size_t e) {
  const uint64_t name = mix(mix(mix(operation + 1) + member) * 0x9e3779b97f4a7c15u + e);
  return {name, mix(name + 1), 0, Form::raw};
}

Value merged(const Value& left, const Value& right) {
  return {left.parts + right.parts, mix(left.tree * 3 + mix(right.tree)), std::max(left.chain, right.chain), left.form};
}

Wanted::Wanted(const Problem& problem, size_t operation) : problem_(problem), operation_(operation) {
  if (!traits_of(problem.kind).reduces) return;
  reduced_.resize(input_count(problem, 0));
  const std::vector<Merge> merges = canonical_merges(problem.member_count);
  std::vector<Value> values(static_cast<size_t>(problem.member_count));
  for (size_t e = 0; e < reduced_.size(); ++e) {
    for (size_t m = 0; m < values.size(); ++m) values[m] = raw_value(operation, m, e);
    for (const Merge& merge : merges) {
      Value& left = values[static_cast<size_t>(merge.left)];
      left = merged(left, values[static_cast<size_t>(merge.right)]);
    }
    reduced_[e] = values[0];
    reduced_[e].form = Form::result;
  }
}

Value Wanted::of(int member, size_t e) const {
  const auto me = static_cast<size_t>(member), members = static_cast<size_t>(problem_.member_count);
  const std::vector<size_t>& counts = problem_.counts;
  switch (problem_.kind) {
    case OpKind::allreduce:
      return reduced_[e];
    case OpKind::reducescatter:
      return reduced_[sum_before(counts, me) + e];
    case OpKind::broadcast:
      return raw_value(operation_, static_cast<size_t>(problem_.root), e);
    case OpKind::allgather: {
      size_t source = 0;
      while (e >= counts[source]) e -= counts[source++];
      return raw_value(operation_, source, e);
    }
    case OpKind::alltoall: {
      size_t source = 0;
      while (e >= counts[source * members + me]) e -= counts[source++ * members + me];
      const size_t row = source * members;
      return raw_value(operation_, source, e + sum_before(counts, row + me) - sum_before(counts, row));
    }
    default:
      return {};
  }
}

size_t input_count(const Problem& problem, int member) {
  const auto me = static_cast<size_t>(member), members = static_cast<size_t>(problem.member_count);
  switch (problem.kind) {
    case OpKind::allgather:
      return problem.counts[me];
    case OpKind::reducescatter:
      return sum_before(problem.counts, members);
    case OpKind::alltoall:
      return sum_before(problem.counts, (me + 1) * members) - sum_before(problem.counts, me * members) + kRowsLeftOver;
    case OpKind::barrier:
      return 0;
    default:
      return problem.count_elems;
  }
}

size_t output_count(const Problem& problem, int member) {
  const auto me = static_cast<size_t>(member), members = static_cast<size_t>(problem.member_count);
  switch (problem.kind) {
    case OpKind::allgather:
      return sum_before(problem.counts, members);
    case OpKind::reducescatter:
      return problem.counts[me];
    case OpKind::alltoall: {
      size_t count = 0;
      for (size_t source = 0; source < members; ++source) count += problem.counts[source * members + me];
      return count;
    }
    case OpKind::barrier:
      return 0;
    default:
      return problem.count_elems;
  }
}

bool is_canonical(std::string_view algorithm, OpKind kind) {
  for (const Algorithm& row : algorithms()) {
    if (row.name == algorithm && row.kind == kind) return row.canonical;
  }
  return false;
}

}  // namespace halay::collective
