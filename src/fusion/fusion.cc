#include "fusion/fusion.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/check.h"

namespace halay::fusion {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Tensors that cannot be separated: a group, as far as it may share a Batch, or one tensor.
struct Unit {
  size_t first = 0;  // index into the list
  size_t bytes = 0;
  size_t batch = kNone;
};

// The units of a list, and which of them each of its Decisions belongs to (kNone: it is not packed).
struct Units {
  std::vector<Unit> all;
  std::vector<size_t> of;
};

struct OpenBatch {
  size_t first = 0;  // index into the list
  size_t bytes = 0;
  size_t batch = 0;
};

bool may_share(const Decision& a, const Decision& b) {
  return a.kind == b.kind && traits_of(a.kind).fusable && a.dtype == b.dtype && a.reduce_op == b.reduce_op &&
         a.prescale == b.prescale && a.postscale == b.postscale && a.device == b.device &&
         (a.reduce_op != ReduceOp::average || a.divisor == b.divisor);
}

// Of fusable kinds, whose shape is the same on all members: so all members pack alike.
size_t bytes_of_tensor(const Decision& decision) {
  return static_cast<size_t>(decision.shape.element_count()) * bytes_of(decision.dtype);
}

Units units_of(const DecisionList& list) {
  Units units;
  units.all.reserve(list.decided.size());
  units.of.assign(list.decided.size(), kNone);
  std::unordered_map<uint32_t, std::vector<size_t>> units_of_group;
  for (size_t i = 0; i < list.decided.size(); ++i) {
    const Decision& decision = *list.decided[i].decision;
    if (!decision.status.ok()) continue;
    const size_t bytes = traits_of(decision.kind).fusable ? bytes_of_tensor(decision) : 0;
    units.of[i] = units.all.size();
    if (decision.group_size > 0) {
      std::vector<size_t>& candidates = units_of_group[static_cast<uint32_t>(decision.group)];
      const auto found = std::ranges::find_if(
          candidates, [&](size_t unit) { return may_share(*list.decided[units.all[unit].first].decision, decision); });
      if (found != candidates.end()) {
        units.of[i] = *found;
        units.all[*found].bytes += bytes;
        continue;
      }
      candidates.push_back(units.all.size());
    }
    units.all.push_back({i, bytes, kNone});
  }
  return units;
}

// Gives each unit its batch; how many batches there are.
size_t assign_batches(const DecisionList& list, std::vector<Unit>& units) {
  std::vector<OpenBatch> open;  // one of a kind, so that the order stays near to that of the list
  size_t batch_count = 0;
  for (Unit& unit : units) {
    const Decision& decision = *list.decided[unit.first].decision;
    if (list.fusion_bytes == 0 || unit.bytes > list.fusion_bytes || !traits_of(decision.kind).fusable) {
      unit.batch = batch_count++;
      continue;
    }
    const auto home = std::ranges::find_if(
        open, [&](const OpenBatch& one) { return may_share(*list.decided[one.first].decision, decision); });
    if (home != open.end() && home->bytes + unit.bytes <= list.fusion_bytes) {
      home->bytes += unit.bytes;
      unit.batch = home->batch;
      continue;
    }
    unit.batch = batch_count++;
    const OpenBatch fresh{unit.first, unit.bytes, unit.batch};
    if (home != open.end()) {
      *home = fresh;
    } else {
      open.push_back(fresh);
    }
  }
  return batch_count;
}

int index_in(const std::vector<int>& members, int member) {
  const auto found = std::ranges::lower_bound(members, member);
  return found != members.end() && *found == member ? static_cast<int>(found - members.begin()) : -1;
}

void set_counts(const Decision& decision, int set_size, Batch& batch) {
  const auto row_elements = static_cast<size_t>(decision.shape.row_elements());
  const size_t p = batch.members.size();
  if (decision.kind == OpKind::allgather) {
    for (const int member : batch.members) {
      batch.counts.push_back(static_cast<size_t>(decision.rows[static_cast<size_t>(member)]) * row_elements);
    }
  }
  if (decision.kind == OpKind::alltoall) {
    for (const int source : batch.members) {
      for (const int target : batch.members) {
        const auto at = static_cast<size_t>(source) * static_cast<size_t>(set_size) + static_cast<size_t>(target);
        batch.counts.push_back(static_cast<size_t>(decision.rows[at]) * row_elements);
      }
    }
  }
  if (decision.kind == OpKind::reducescatter) {
    const auto rows = static_cast<size_t>(decision.shape[0]);
    for (size_t i = 0; i < p; ++i) batch.counts.push_back((rows / p + (i < rows % p ? 1 : 0)) * row_elements);
  }
}

// All that the first of its tensors says.
void begin(const DecisionList& list, const Decision& decision, int set_size, Batch& batch) {
  const OpTraits& traits = traits_of(decision.kind);
  batch.list_number = list.number;
  batch.kind = decision.kind;
  batch.dtype = decision.dtype;
  if (traits.reduces) {
    const bool average = decision.reduce_op == ReduceOp::average;
    batch.reduce_op = average ? ReduceOp::sum : decision.reduce_op;
    if (average) {
      batch.divisor = decision.divisor == Divisor::active ? static_cast<int64_t>(batch.members.size()) : set_size;
    }
    batch.prescale = decision.prescale;
    batch.postscale = decision.postscale;
  }
  if (traits.has_root) batch.root = index_in(batch.members, decision.root);
  if (decision.kind == OpKind::join) batch.last_joined = decision.last_joined;
  set_counts(decision, set_size, batch);
}

void add(const Decided& decided, Batch& batch) {
  const Decision& decision = *decided.decision;
  const bool has_data = traits_of(decision.kind).shapes != ShapeRule::none;
  size_t count_elems = has_data ? static_cast<size_t>(decision.shape.element_count()) : 0;
  if (decision.kind == OpKind::alltoall && batch.me >= 0) {
    // Rows that no split covers stay where they are.
    const size_t p = batch.members.size();
    const auto mine = std::span(batch.counts).subspan(static_cast<size_t>(batch.me) * p, p);
    count_elems = std::accumulate(mine.begin(), mine.end(), size_t{0});
  }
  batch.tensors.push_back({decision.name, decided.ticket, count_elems});
  batch.count_elems += count_elems;
}

}  // namespace

std::vector<Batch> pack(const DecisionList& list, int set_size, int me) {
  std::vector<int> members;
  for (int member = 0; member < set_size; ++member) {
    if (!std::ranges::binary_search(list.joined, member)) members.push_back(member);
  }
  HALAY_ASSERT(!members.empty());
  const int index = index_in(members, me);
  Units units = units_of(list);
  std::vector<Batch> out(assign_batches(list, units.all));
  for (size_t i = 0; i < list.decided.size(); ++i) {
    if (units.of[i] == kNone) continue;
    Batch& batch = out[units.all[units.of[i]].batch];
    if (batch.tensors.empty()) {
      batch.members = members;
      batch.me = index;
      begin(list, *list.decided[i].decision, set_size, batch);
    }
    add(list.decided[i], batch);
  }
  return out;
}

}  // namespace halay::fusion
