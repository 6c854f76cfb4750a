#include "engine/binding.h"

#include <numeric>

#include "base/text.h"

namespace halay::engine {
namespace {

// What the kind makes of the input's shape, once all members' rows are known.
Shape output_shape(const Submission& submission, const Decision& decision, int member_count, int me) {
  Shape shape = submission.request.shape;
  const auto p = static_cast<size_t>(member_count);
  switch (traits_of(decision.kind).output) {
    case OutputRule::same:
    case OutputRule::none:
      break;
    case OutputRule::concat:
      shape.set_dim(0, std::accumulate(decision.rows.begin(), decision.rows.end(), int64_t{0}));
      break;
    case OutputRule::scattered:
      shape.set_dim(0, scattered_rows(shape[0], member_count, me));
      break;
    case OutputRule::exchanged: {
      int64_t rows = 0;
      for (size_t source = 0; source < p; ++source) rows += decision.rows[source * p + static_cast<size_t>(me)];
      shape.set_dim(0, rows);
      break;
    }
  }
  return shape;
}

// Elements that go out: all of them, but an alltoall may leave rows over.
int64_t input_elements(const Submission& submission, const Decision& decision, int member_count, int me) {
  const Request& request = submission.request;
  if (decision.kind != OpKind::alltoall) return request.shape.element_count();
  const auto p = static_cast<size_t>(member_count);
  const auto first = decision.rows.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(me) * p);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(p), int64_t{0}) * request.shape.row_elements();
}

Status check_splits(const Request& request, int member_count, std::string_view kind) {
  if (request.splits.empty()) {
    if (request.shape[0] % member_count != 0) {
      return Status::invalid_argument(
          text(kind, ": ", request.shape[0], " rows do not divide by the ", member_count, " members; give splits"));
    }
    return {};
  }
  if (request.splits.size() != static_cast<size_t>(member_count)) {
    return Status::invalid_argument(text(kind, ": ", request.splits.size(), " splits for ", member_count, " members"));
  }
  int64_t sum = 0;
  for (const int64_t split : request.splits) {
    if (split < 0 || split > request.shape[0]) {
      return Status::invalid_argument(text(kind, ": a split of ", split, " rows of ", request.shape[0]));
    }
    sum += split;
  }
  if (sum > request.shape[0]) {
    return Status::invalid_argument(
        text(kind, ": the splits sum to ", sum, " rows, the tensor has ", request.shape[0]));
  }
  return {};
}

}  // namespace

int64_t scattered_rows(int64_t rows, int member_count, int member) {
  return rows / member_count + (member < rows % member_count ? 1 : 0);
}

Status check_submission(const Submission& submission, int member_count) {
  const Request& request = submission.request;
  const OpTraits& traits = traits_of(request.kind);
  const std::string_view kind = name_of(request.kind);
  if (traits.output == OutputRule::none) return {};
  const bool by_rows = traits.output != OutputRule::same;
  if (by_rows && request.shape.dim_count() == 0) {
    return Status::invalid_argument(
        text(kind, " takes tensors of at least one dimension; reshape the 0-d tensor to (1,)"));
  }
  if (request.kind == OpKind::alltoall) HALAY_RETURN_IF_ERROR(check_splits(request, member_count, kind));
  const auto bytes = static_cast<size_t>(request.shape.element_count()) * bytes_of(request.dtype);
  if (bytes > 0 && submission.input == nullptr) {
    return Status::invalid_argument(text(kind, ": no input for a tensor of shape ", text_of(request.shape)));
  }
  if (submission.output != nullptr && traits.output == OutputRule::same && submission.output_bytes < bytes) {
    return Status::invalid_argument(
        text(kind, ": the output has room for ", submission.output_bytes, " bytes, the result has ", bytes));
  }
  if (submission.output != nullptr && submission.output == submission.input && by_rows) {
    return Status::invalid_argument(text(kind, " cannot write its result into its input"));
  }
  return {};
}

Status bind(Operation& operation, const Decision& decision, int member_count, int me) {
  const Submission& submission = operation.submission;
  OperationResult& result = operation.result;
  result.dtype = submission.request.dtype;
  result.shape = output_shape(submission, decision, member_count, me);
  result.size_bytes = 0;
  result.received_splits.clear();
  if (decision.kind == OpKind::alltoall) {
    const auto p = static_cast<size_t>(member_count);
    for (size_t source = 0; source < p; ++source) {
      result.received_splits.push_back(decision.rows[source * p + static_cast<size_t>(me)]);
    }
  }
  execute::Binding& binding = operation.binding;
  binding = {};
  if (traits_of(decision.kind).output == OutputRule::none) return {};
  binding.input = submission.input;
  binding.input_elems = static_cast<size_t>(input_elements(submission, decision, member_count, me));
  binding.output_elems = static_cast<size_t>(result.shape.element_count());
  result.size_bytes = binding.output_elems * bytes_of(result.dtype);
  if (submission.output != nullptr && submission.output_bytes >= result.size_bytes) {
    result.data = submission.output;
  } else {
    HALAY_TRY(operation.owned, memory::OwnedBuffer::make(result.size_bytes));
    result.data = operation.owned.data();
  }
  binding.output = result.data;
  return {};
}

}  // namespace halay::engine
