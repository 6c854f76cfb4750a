// ring allreduce, reducescatter and allgather, pipelined. Not canonical where it reduces: the order depends on the
// element.
//
// Everybody sends to the next member only. Part q starts at member q as raw input, grows by one contribution a step
// (partial sums in the accumulator type), is finished by the last one, and then walks round once more in the narrow
// type. (reducescatter: it starts at q + 1 and ends at q.) Steps run chunk by chunk, at most kAhead chunks ahead of
// what has been received; a part has two chunks or more unless it is small, so at least two are in flight.
//
// p members, parts of n elements, E bytes each, A in the accumulator type:
//   rounds  2 (p - 1); reducescatter and allgather p - 1
//   sent    E for each element of the first part, A for the p - 2 partial ones, E for the p - 1 results;
//           reducescatter: without the results; allgather: all parts but that of the next member
//   cost    rounds * alpha + m beta (the bytes above) + (p - 1) m A gamma / c, m the largest part and c its chunks:
//           but for the last chunk, adding goes on beside sending
#include "collective/builder.h"
#include "collective/rows.h"

namespace halay::collective {
namespace {

constexpr size_t kAhead = 3;

bool reduces(const Problem& problem) { return problem.kind != OpKind::allgather; }
bool gathers(const Problem& problem) { return problem.kind != OpKind::reducescatter; }

std::vector<Part> parts_for(const Problem& problem) {
  if (problem.kind == OpKind::allreduce) return even_parts(problem.count_elems, problem.member_count);
  return parts_of(problem.counts);
}

size_t ring_chunk(const Problem& problem, const Surroundings& surroundings, size_t largest_part) {
  constexpr size_t kSmallBytes = 16 * 1024;  // not worth halving
  const size_t bytes_each = bytes_of(reduces(problem) ? accumulator_of(problem.dtype) : problem.dtype);
  const size_t half = std::max((largest_part + 1) / 2, kSmallBytes / bytes_each);
  return std::clamp<size_t>(half, 1, chunk_elems_of(surroundings, bytes_each));
}

bool fits(const Problem& problem, const Surroundings&) { return problem.member_count > 1; }

double cost(const Problem& problem, const Surroundings& surroundings) {
  const LinkCosts& link = surroundings.link;
  const double hops = problem.member_count - 1;
  const size_t part = largest(parts_for(problem));
  const auto narrow = static_cast<double>(part * bytes_of(problem.dtype));
  const auto wide = static_cast<double>(part * bytes_of(accumulator_of(problem.dtype)));
  const double chunks = std::max<double>(1, chunks_in(part, ring_chunk(problem, surroundings, part)));
  const double latency = hops * link.alpha;
  double seconds = 0;
  if (reduces(problem))
    seconds += latency + link.beta * (narrow + (hops - 1) * wide) + hops * wide * link.gamma / chunks;
  if (gathers(problem)) seconds += latency + hops * narrow * link.beta;
  return seconds;
}

class Ring {
 public:
  Ring(const Problem& problem, const Surroundings& surroundings)
      : members_(problem.member_count),
        me_(problem.me),
        kind_(problem.kind),
        wide_(widens(problem.dtype)),
        parts_(parts_for(problem)),
        chunk_(ring_chunk(problem, surroundings, largest(parts_))),
        chunk_count_(chunks_in(largest(parts_), chunk_)),
        reduce_steps_(reduces(problem) ? static_cast<size_t>(members_ - 1) : 0),
        steps_(reduce_steps_ + (gathers(problem) ? static_cast<size_t>(members_ - 1) : 0)),
        total_(steps_ * chunk_count_),
        ahead_(std::min(kAhead, chunk_count_)),
        builder_("ring", problem),
        sent_(total_, kNoPost),
        received_(total_, kNoPost) {
    if (kind_ == OpKind::allreduce && !wide_) builder_.let_acc_be_output();
    builder_.reserve(total_ * 7);
  }

  Schedule plan() && {
    expect(0);
    for (size_t j = 0; j < ahead_; ++j) send(j);
    for (size_t j = 1; j <= ahead_; ++j) expect(j);
    if (kind_ == OpKind::allgather) {
      for (size_t c = 0; c < chunk_count_; ++c) builder_.copy(output(chunk(me_, c)), input(own_input(c)));
    }
    for (size_t j = 0; j < total_; ++j) {
      builder_.wait(received_[j]);
      if (step(j) < reduce_steps_) add_mine(j);
      send(j + ahead_);
      if (j >= ahead_) builder_.wait(sent_[j - ahead_]);
      expect(j + ahead_ + 1);
    }
    builder_.wait_all(sent_);
    return builder_.take(static_cast<uint32_t>(steps_));
  }

 private:
  // Transfer number j is chunk j % chunk_count_ of step j / chunk_count_.
  size_t step(size_t j) const { return j / chunk_count_; }
  Part chunk(int part, size_t c) const { return chunk_of(parts_[static_cast<size_t>(part)], c, chunk_); }
  int sent_part(size_t j) const {
    const int shift = kind_ == OpKind::reducescatter ? 1 : 0;
    return before(me_, static_cast<int>(step(j)) + shift, members_);
  }
  int received_part(size_t j) const { return before(sent_part(j), 1, members_); }
  Part sent_chunk(size_t j) const { return chunk(sent_part(j), j % chunk_count_); }
  Part received_chunk(size_t j) const { return chunk(received_part(j), j % chunk_count_); }
  Part own_input(size_t c) const { return chunk_of({0, parts_[static_cast<size_t>(me_)].count}, c, chunk_); }

  // Where what is received waits to be added: as it came (raw at first, else partial sums), and as partial sums.
  Region raw_slot(size_t j, size_t count_elems) const { return staging({j % (ahead_ + 1) * chunk_, count_elems}); }
  Region partial_slot(size_t j, size_t count_elems) const {
    if (!wide_) return raw_slot(j, count_elems);
    return acc({(2 * chunk_count_ + j % (ahead_ + 1)) * chunk_, count_elems});
  }
  // Where the partial sum made of transfer j stays until it has been sent on, a whole step later.
  Region home(size_t j) const {
    const Part part = received_chunk(j);
    if (kind_ == OpKind::allreduce && !wide_) return acc(part);
    return acc({(step(j) % 2 * chunk_count_ + j % chunk_count_) * chunk_, part.count});
  }
  Region result(const Part& part) const {
    const size_t start = kind_ == OpKind::reducescatter ? parts_[static_cast<size_t>(me_)].offset : 0;
    return output({part.offset - start, part.count});
  }

  void expect(size_t j) {
    if (j >= total_) return;
    const Part part = received_chunk(j);
    if (part.count == 0) return;
    const int peer = before(me_, 1, members_);
    if (step(j) < reduce_steps_) {
      received_[j] = builder_.recv(peer, step(j) == 0 ? raw_slot(j, part.count) : partial_slot(j, part.count));
      return;
    }
    // What I sent of these elements while reducing must have left.
    const size_t lap = static_cast<size_t>(members_ - 1) * chunk_count_;
    if (j >= lap) builder_.wait(sent_[j - lap]);
    received_[j] = builder_.recv(peer, output(part));
  }

  void send(size_t j) {
    if (j >= total_) return;
    const Part part = sent_chunk(j);
    if (part.count == 0) return;
    Region from = output(part);
    if (step(j) == 0) {
      from = input(kind_ == OpKind::allgather ? own_input(j) : part);
    } else if (step(j) < reduce_steps_) {
      from = home(j - chunk_count_);
    }
    sent_[j] = builder_.send(after(me_, 1, members_), from);
  }

  void add_mine(size_t j) {
    const Part part = received_chunk(j);
    if (part.count == 0) return;
    const Region partial = partial_slot(j, part.count), sum = home(j);
    if (step(j) >= 2) builder_.wait(sent_[j - chunk_count_]);  // the last that lay in this home
    if (step(j) == 0) builder_.load(partial, raw_slot(j, part.count));
    builder_.load(sum, input(part));
    builder_.reduce(sum, partial, sum);
    if (step(j) + 1 == reduce_steps_) builder_.finish(result(part), sum);
  }

  const int members_;
  const int me_;
  const OpKind kind_;
  const bool wide_;
  const std::vector<Part> parts_;
  const size_t chunk_;
  const size_t chunk_count_;
  const size_t reduce_steps_;
  const size_t steps_;
  const size_t total_;
  const size_t ahead_;  // at most a step: what is sent on must have been received
  Builder builder_;
  std::vector<Post> sent_, received_;
};

Schedule plan_ring(const Problem& problem, const Surroundings& surroundings) {
  return Ring(problem, surroundings).plan();
}

}  // namespace

Algorithm ring_allreduce_row() { return {"ring", OpKind::allreduce, false, false, fits, cost, plan_ring}; }
Algorithm ring_reducescatter_row() { return {"ring", OpKind::reducescatter, false, false, fits, cost, plan_ring}; }
Algorithm ring_allgather_row() { return {"ring", OpKind::allgather, true, false, fits, cost, plan_ring}; }

}  // namespace halay::collective
