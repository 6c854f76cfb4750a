#include "fusion/fusion.h"

#include <algorithm>
#include <numeric>
#include <cstdint>
#include <unordered_map>

#include "base/check.h"

namespace halay::fusion {
namespace {

// Tensors that cannot be separated: a group, as far as it may share a Batch, or one tensor.
struct Unit {
  std::vector<size_t> items;  // indices into the list
  size_t bytes = 0;
};

struct OpenBatch {
  std::vector<size_t> items;
  size_t bytes = 0;
  bool full = false;
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

std::vector<Unit> units_of(const DecisionList& list) {
  std::vector<Unit> units;
  std::unordered_map<uint32_t, std::vector<size_t>> units_of_group;
  for (size_t i = 0; i < list.decided.size(); ++i) {
    const Decision& decision = *list.decided[i].decision;
    if (!decision.status.ok()) continue;
    const size_t bytes = traits_of(decision.kind).fusable ? bytes_of_tensor(decision) : 0;
    if (decision.group_size > 0) {
      std::vector<size_t>& candidates = units_of_group[static_cast<uint32_t>(decision.group)];
      const auto found = std::ranges::find_if(
          candidates, [&](size_t unit) { return may_share(*list.decided[units[unit].items[0]].decision, decision); });
      if (found != candidates.end()) {
        units[*found].items.push_back(i);
        units[*found].bytes += bytes;
        continue;
      }
      candidates.push_back(units.size());
    }
    units.push_back({{i}, bytes});
  }
  return units;
}

std::vector<OpenBatch> batches_of(const DecisionList& list, std::vector<Unit> units) {
  std::vector<OpenBatch> batches;
  for (Unit& unit : units) {
    const Decision& decision = *list.decided[unit.items[0]].decision;
    const bool alone = list.fusion_bytes == 0 || unit.bytes > list.fusion_bytes || !traits_of(decision.kind).fusable;
    OpenBatch* home = nullptr;
    for (OpenBatch& batch : batches) {
      if (alone || batch.full || !may_share(*list.decided[batch.items[0]].decision, decision)) continue;
      if (batch.bytes + unit.bytes <= list.fusion_bytes) {
        home = &batch;
      } else {
        batch.full = true;  // one open batch of a kind, so that the order stays near to that of the list
      }
      break;
    }
    if (home) {
      home->items.insert(home->items.end(), unit.items.begin(), unit.items.end());
      home->bytes += unit.bytes;
    } else {
      batches.push_back({std::move(unit.items), unit.bytes, alone});
    }
  }
  for (OpenBatch& batch : batches) std::ranges::sort(batch.items);
  return batches;
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

Batch batch_of(const DecisionList& list, const OpenBatch& open, const std::vector<int>& members, int set_size, int me) {
  const Decision& decision = *list.decided[open.items[0]].decision;
  const OpTraits& traits = traits_of(decision.kind);
  Batch batch;
  batch.list_number = list.number;
  batch.kind = decision.kind;
  batch.dtype = decision.dtype;
  batch.members = members;
  batch.me = index_in(members, me);
  if (traits.reduces) {
    const bool average = decision.reduce_op == ReduceOp::average;
    batch.reduce_op = average ? ReduceOp::sum : decision.reduce_op;
    if (average) {
      batch.divisor = decision.divisor == Divisor::active ? static_cast<int64_t>(members.size()) : set_size;
    }
    batch.prescale = decision.prescale;
    batch.postscale = decision.postscale;
  }
  if (traits.has_root) batch.root = index_in(members, decision.root);
  if (decision.kind == OpKind::join) batch.last_joined = decision.last_joined;
  for (const size_t item : open.items) {
    const Decided& decided = list.decided[item];
    const bool has_data = traits.shapes != ShapeRule::none;
    const size_t count = has_data ? static_cast<size_t>(decided.decision->shape.element_count()) : 0;
    batch.tensors.push_back({decided.decision->name, decided.ticket, count});
    batch.count_elems += count;
  }
  set_counts(decision, set_size, batch);
  if (decision.kind == OpKind::alltoall && batch.me >= 0) {
    // Rows that no split covers stay where they are.
    const auto mine = batch.counts.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(batch.me) * members.size());
    const size_t sent = std::accumulate(mine, mine + static_cast<std::ptrdiff_t>(members.size()), size_t{0});
    batch.count_elems = batch.tensors[0].count_elems = sent;
  }
  return batch;
}

}  // namespace

std::vector<Batch> pack(const DecisionList& list, int set_size, int me) {
  std::vector<int> members;
  for (int member = 0; member < set_size; ++member) {
    if (!std::ranges::binary_search(list.joined, member)) members.push_back(member);
  }
  HALAY_ASSERT(!members.empty());
  std::vector<Batch> out;
  for (const OpenBatch& open : batches_of(list, units_of(list))) {
    out.push_back(batch_of(list, open, members, set_size, me));
  }
  return out;
}

}  // namespace halay::fusion
