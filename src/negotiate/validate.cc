#include "negotiate/validate.h"

#include <algorithm>

#include "base/text.h"

namespace halay::negotiate {
namespace {

std::string tensor_text(const Request& request) { return text(request.dtype, ' ', text_of(request.shape)); }
std::string_view divisor_text(Divisor divisor) { return divisor == Divisor::active ? "active ranks" : "all ranks"; }
std::string_view device_text(DeviceType device) {
  return device == DeviceType::cuda ? "a CUDA tensor" : "a CPU tensor";
}

// One property that all members must share, and how a value of it reads.
struct Property {
  bool (*same)(const Request& a, const Request& b);
  std::string (*value)(const Request& request, const Round& round, const NameTable& names);
};

bool same_dims(const Request& a, const Request& b) {
  const ShapeRule rule = traits_of(a.kind).shapes;
  if (rule == ShapeRule::none) return true;
  if (rule == ShapeRule::equal || a.shape.dim_count() == 0) return a.shape == b.shape;
  return a.shape.dim_count() == b.shape.dim_count() &&
         std::ranges::equal(a.shape.dims().subspan(1), b.shape.dims().subspan(1));
}

// In the order in which a difference is told.
constexpr Property kProperties[] = {
    {[](const Request& a, const Request& b) { return a.kind == b.kind; },
     [](const Request& r, const Round&, const NameTable&) { return text(r.kind, ' ', tensor_text(r)); }},
    {[](const Request& a, const Request& b) { return a.dtype == b.dtype; },
     [](const Request& r, const Round&, const NameTable&) { return tensor_text(r); }},
    {same_dims, [](const Request& r, const Round&, const NameTable&) { return tensor_text(r); }},
    {[](const Request& a, const Request& b) { return a.reduce_op == b.reduce_op; },
     [](const Request& r, const Round&, const NameTable&) { return text("op ", r.reduce_op); }},
    {[](const Request& a, const Request& b) { return a.prescale == b.prescale && a.postscale == b.postscale; },
     [](const Request& r, const Round&, const NameTable&) {
       return text("prescale ", r.prescale, " and postscale ", r.postscale);
     }},
    {[](const Request& a, const Request& b) { return a.divisor == b.divisor; },
     [](const Request& r, const Round&, const NameTable&) {
       return text("an average over ", divisor_text(r.divisor));
     }},
    {[](const Request& a, const Request& b) { return a.root == b.root; },
     [](const Request& r, const Round& round, const NameTable&) {
       return text("root rank ", round.ranks[static_cast<size_t>(r.root)]);
     }},
    {[](const Request& a, const Request& b) { return a.device == b.device; },
     [](const Request& r, const Round&, const NameTable&) { return std::string(device_text(r.device)); }},
    {[](const Request& a, const Request& b) { return a.group == b.group && a.group_size == b.group_size; },
     [](const Request& r, const Round&, const NameTable& names) {
       if (r.group_size == 0) return std::string("it in no group");
       return text("it in group ", names.text(r.group), " of ", r.group_size,
                   r.group_size == 1 ? " tensor" : " tensors");
     }},
};

// Other kinds need a part of every member.
bool can_skip(OpKind kind) { return kind == OpKind::allreduce || kind == OpKind::barrier; }
bool needs_rows(OpKind kind) {
  return kind == OpKind::allgather || kind == OpKind::alltoall || kind == OpKind::reducescatter;
}

Status check_splits(const Asked& asked, const Round& round, const NameTable& names) {
  const Request& request = *asked.request;
  int64_t sum = 0;
  bool fits = request.splits.size() == round.ranks.size();
  for (const int64_t split : request.splits) fits = fits && split >= 0 && !__builtin_add_overflow(sum, split, &sum);
  if (fits && sum <= request.shape[0]) return {};
  return Status::mismatch(text(names.text(request.name), ": rank ", round.ranks[static_cast<size_t>(asked.member)],
                               " sent splits ", request.splits, " for ", request.shape[0], " rows and ",
                               round.ranks.size(), " ranks"));
}

Status check_rows(const Round& round, const NameTable& names) {
  const Request& first = *round.asked[0].request;
  if (!needs_rows(first.kind)) return {};
  if (first.shape.dim_count() == 0) {
    return Status::mismatch(text(names.text(first.name), ": ", first.kind, " needs at least one dimension, rank ",
                                 round.ranks[static_cast<size_t>(round.asked[0].member)], " sent ",
                                 tensor_text(first)));
  }
  int64_t rows = 0, bytes = 0;
  bool countable = true;
  for (const Asked& asked : round.asked) {
    if (first.kind == OpKind::alltoall) HALAY_RETURN_IF_ERROR(check_splits(asked, round, names));
    countable = countable && !__builtin_add_overflow(rows, asked.request->shape[0], &rows);
  }
  countable = countable && !__builtin_mul_overflow(rows, std::max<int64_t>(1, first.shape.row_elements()), &bytes) &&
              !__builtin_mul_overflow(bytes, static_cast<int64_t>(bytes_of(first.dtype)), &bytes);
  if (countable) return {};
  return Status::mismatch(text(names.text(first.name), ": all ranks together sent more bytes than can be counted"));
}

}  // namespace

Status validate(const Round& round, const NameTable& names) {
  HALAY_ASSERT(!round.asked.empty());
  const Asked& first = round.asked[0];
  const std::string_view name = names.text(first.request->name);
  for (const Property& property : kProperties) {
    for (const Asked& other : round.asked.subspan(1)) {
      if (property.same(*first.request, *other.request)) continue;
      return Status::mismatch(text(name, ": rank ", round.ranks[static_cast<size_t>(other.member)], " sent ",
                                   property.value(*other.request, round, names), ", rank ",
                                   round.ranks[static_cast<size_t>(first.member)], ' ',
                                   property.value(*first.request, round, names)));
    }
  }
  if (!round.skipped.empty() && !can_skip(first.request->kind)) {
    return Status::mismatch(text(name, ": ", first.request->kind, " needs every rank, but ",
                                 ranks_text(round.skipped, round.ranks),
                                 round.skipped.size() == 1 ? " has joined" : " have joined"));
  }
  return check_rows(round, names);
}

Decision decide(const Round& round) {
  const Request& first = *round.asked[0].request;
  Decision decision;
  decision.name = first.name;
  decision.kind = first.kind;
  decision.dtype = first.dtype;
  decision.reduce_op = first.reduce_op;
  decision.divisor = first.divisor;
  decision.device = first.device;
  decision.root = first.root;
  decision.prescale = first.prescale;
  decision.postscale = first.postscale;
  decision.shape = first.shape;
  decision.group = first.group;
  decision.group_size = first.group_size;
  if (traits_of(first.kind).shapes != ShapeRule::rows) return decision;
  decision.shape.set_dim(0, 0);
  for (const Asked& asked : round.asked) {
    if (first.kind == OpKind::alltoall) {
      decision.rows.insert(decision.rows.end(), asked.request->splits.begin(), asked.request->splits.end());
    } else {
      decision.rows.push_back(asked.request->shape[0]);
    }
  }
  return decision;
}

Request request_behind(const Decision& decision, int member, int set_size) {
  Request request;
  request.name = decision.name;
  request.kind = decision.kind;
  request.dtype = decision.dtype;
  request.reduce_op = decision.reduce_op;
  request.divisor = decision.divisor;
  request.device = decision.device;
  request.root = decision.root;
  request.prescale = decision.prescale;
  request.postscale = decision.postscale;
  request.shape = decision.shape;
  request.group = decision.group;
  request.group_size = decision.group_size;
  if (decision.kind == OpKind::allgather) request.shape.set_dim(0, decision.rows[static_cast<size_t>(member)]);
  if (decision.kind == OpKind::alltoall) {
    const auto own = decision.rows.begin() + static_cast<ptrdiff_t>(member) * set_size;
    request.splits.assign(own, own + set_size);
    int64_t rows = 0;
    for (const int64_t split : request.splits) rows += split;
    request.shape.set_dim(0, rows);
  }
  return request;
}

bool answers(const Decision& decision, const Request& request, int member, int set_size) {
  const OpTraits& traits = traits_of(request.kind);
  if (decision.kind != request.kind || decision.device != request.device) return false;
  if (decision.group_size != request.group_size) return false;
  if (request.group_size != 0 && decision.group != request.group) return false;
  if (traits.shapes == ShapeRule::none) return true;
  if (decision.dtype != request.dtype || !(decision.shape == request.shape)) return false;
  if (traits.has_root && decision.root != request.root) return false;
  if (traits.reduces) {
    if (decision.reduce_op != request.reduce_op || decision.prescale != request.prescale ||
        decision.postscale != request.postscale) {
      return false;
    }
    if (request.reduce_op == ReduceOp::average && decision.divisor != request.divisor) return false;
  }
  if (request.kind != OpKind::alltoall) return true;
  const auto p = static_cast<size_t>(set_size);
  const auto own = std::span(decision.rows).subspan(static_cast<size_t>(member) * p, p);
  if (!request.splits.empty()) return std::ranges::equal(own, request.splits);
  const int64_t each = request.shape[0] / set_size;
  return request.shape[0] % set_size == 0 && std::ranges::all_of(own, [each](int64_t rows) { return rows == each; });
}

void normalize(Request& request, int set_size) {
  const OpTraits& traits = traits_of(request.kind);
  if (!traits.reduces) {
    request.reduce_op = ReduceOp::sum;
    request.prescale = request.postscale = 1.0;
  }
  if (request.reduce_op != ReduceOp::average) request.divisor = Divisor::world;
  if (!traits.has_root) request.root = 0;
  if (traits.shapes == ShapeRule::none) {
    request.shape = Shape{};
    request.dtype = DType::uint8;
  }
  if (request.kind != OpKind::alltoall) {
    request.splits.clear();
  } else if (request.splits.empty() && request.shape.dim_count() > 0 && request.shape[0] % set_size == 0) {
    request.splits.assign(static_cast<size_t>(set_size), request.shape[0] / set_size);
  }
  if (request.group_size == 0) request.group = NameId{};
}

std::string ranks_text(std::span<const int> members, std::span<const int32_t> ranks) {
  constexpr size_t kShown = 8;
  std::string out = members.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(members.size(), kShown); ++i) {
    if (i) out += ", ";
    out += std::to_string(ranks[static_cast<size_t>(members[i])]);
  }
  if (members.size() > kShown) out += text(" and ", members.size() - kShown, " more");
  return out;
}

}  // namespace halay::negotiate
