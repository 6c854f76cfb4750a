#include "collective/checker.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "collective/checked_member.h"
#include "collective/checked_windows.h"
#include "collective/symbolic.h"

namespace halay::collective {
namespace {

class Checker {
 public:
  Checker(std::span<const CheckedOperation> operations, const CheckOptions& options)
      : operations_(operations),
        options_(options),
        random_(options.seed),
        members_(operations.empty() ? 0 : operations[0].schedules.size()),
        messages_(members_.size() * members_.size()),
        expected_(members_.size() * members_.size()),
        flags_(members_.size() * kFlagCount),
        entered_at_(operations.size(), Clock(members_.size(), 0)),
        trees_(operations.size()) {}

  Result<CheckReport> run() {
    prepare();
    if (members_.empty()) return report_;
    if (check_declarations() && interleave()) check_left_over();
    if (!status_.ok()) return status_;
    return report_;
  }

 private:
  void prepare() {
    report_.rounds.resize(operations_.size(), 0);
    bool windows_used = false;
    for (const CheckedOperation& operation : operations_) {
      wanted_.emplace_back(operation.problem, wanted_.size());
      for (const Schedule& schedule : operation.schedules) windows_used |= schedule.uses_windows;
      clocks_ |= windows_used || operation.problem.kind == OpKind::barrier;
    }
    for (size_t m = 0; m < members_.size(); ++m) {
      members_[m].clock.assign(clocks_ ? members_.size() : 0, 0);
      if (clocks_) members_[m].clock[m] = 1;
    }
    if (windows_used) windows_ = CheckedWindows(members_.size(), 2 * options_.window_bytes);
  }

  bool interleave() {
    std::vector<size_t> unfinished(members_.size());
    for (size_t m = 0; m < members_.size(); ++m) unfinished[m] = m;
    // A third of the runs has one member that only moves when nobody else can, a third one that moves as far as it can.
    const uint64_t manner = random_.below(3);
    const size_t odd_one = random_.below(members_.size());
    while (!unfinished.empty()) {
      const size_t start = random_.below(unfinished.size());
      bool moved = false;
      for (size_t i = 0; i < unfinished.size() && !moved && status_.ok(); ++i) {
        const size_t member = unfinished[(start + i) % unfinished.size()];
        if (manner == 1 && member == odd_one) continue;
        moved = advance(member, manner == 2 && member == odd_one ? 1000 : 1 + random_.below(8));
      }
      if (!moved && status_.ok() && manner == 1) moved = advance(odd_one, 1);
      if (!moved && status_.ok()) status_ = deadlock(unfinished);
      if (!status_.ok()) return false;
      std::erase_if(unfinished, [&](size_t m) { return members_[m].operation == operations_.size(); });
    }
    return true;
  }

  void check_left_over() {
    for (size_t pair = 0; pair < messages_.size(); ++pair) {
      if (messages_[pair].empty()) continue;
      const size_t from = pair / members_.size(), to = pair % members_.size();
      status_ = Status::internal(text("a message from ", from, " to ", to, " is left over"));
    }
  }

  template <typename... Parts>
  bool fail(size_t m, const Parts&... parts) {
    const Member& member = members_[m];
    std::string where = text("operation ", member.operation, ", member ", m, ", step ", member.next_step);
    if (member.operation < operations_.size()) {
      const Schedule& schedule = schedule_of(m);
      where += text(" of ", schedule.algorithm);
      if (member.next_step < schedule.steps.size()) where += text(" (", schedule.steps[member.next_step].kind, ')');
    }
    status_ = Status::internal(text(where, ": ", parts...));
    return false;
  }

  const CheckedOperation& operation_of(size_t m) const { return operations_[members_[m].operation]; }
  const Schedule& schedule_of(size_t m) const { return operation_of(m).schedules[m]; }

  bool check_declarations() {
    for (const CheckedOperation& operation : operations_) {
      HALAY_ASSERT(operation.schedules.size() == members_.size());
      const Schedule& first = operation.schedules[0];
      for (const Schedule& schedule : operation.schedules) {
        if (schedule.flag_span != first.flag_span || schedule.uses_windows != first.uses_windows ||
            schedule.rounds != first.rounds || schedule.algorithm != first.algorithm) {
          return fail(0, "members differ in algorithm, rounds, flag_span or use of windows");
        }
        if (schedule.acc_is_output && widens(operation.problem.dtype)) return fail(0, "acc cannot be output");
      }
    }
    return true;
  }

  Status deadlock(const std::vector<size_t>& unfinished) {
    std::string waiting = "nobody can move:";
    for (const size_t m : unfinished) {
      const Step& step = schedule_of(m).steps[members_[m].next_step];
      waiting += text(" member ", m, " at step ", members_[m].next_step, " (", step.kind, ");");
    }
    return Status::internal(waiting);
  }

  // Makes up to `most` steps; false if none could be made.
  bool advance(size_t m, size_t most) {
    Member& member = members_[m];
    bool moved = false;
    for (size_t i = 0; i < most && member.operation < operations_.size(); ++i) {
      if (!member.entered) enter(m);
      if (member.next_step == schedule_of(m).steps.size()) {
        if (!leave(m)) return false;
        moved = true;
        continue;
      }
      const Step& step = schedule_of(m).steps[member.next_step];
      if (!ready(m, step)) return moved;
      if (!status_.ok() || !make(m, step)) return false;
      ++member.next_step;
      ++report_.steps;
      moved = true;
    }
    return moved;
  }

  bool in_place(const Problem& problem) const {
    return options_.in_place &&
           (problem.kind == OpKind::allreduce || problem.kind == OpKind::broadcast ||
            (problem.member_count == 1 && problem.kind != OpKind::barrier && problem.kind != OpKind::alltoall));
  }

  void enter(size_t m) {
    Member& member = members_[m];
    const Problem& problem = operation_of(m).problem;
    const Schedule& schedule = schedule_of(m);
    member.entered = true;
    member.next_step = 0;
    member.chain = 0;
    member.sent_bytes = 0;
    member.transfers.assign(schedule.steps.size(), Transfer::unposted);
    member.received.assign(clocks_ ? schedule.steps.size() : 0, {});
    member.chains.assign(schedule.steps.size(), 0);
    std::vector<Value>& input = memory_of(m, Buffer::input);
    input.resize(input_count(problem, static_cast<int>(m)));
    for (size_t e = 0; e < input.size(); ++e) input[e] = raw_value(member.operation, m, e);
    memory_of(m, Buffer::output).assign(output_count(problem, static_cast<int>(m)), Value{});
    if (in_place(problem)) memory_of(m, Buffer::output) = input;
    memory_of(m, Buffer::staging).assign(schedule.staging_elems, Value{});
    memory_of(m, Buffer::acc).assign(schedule.acc_elems, Value{});
    if (clocks_) entered_at_[member.operation][m] = ++member.clock[m];
  }

  bool leave(size_t m) {
    Member& member = members_[m];
    const Schedule& schedule = schedule_of(m);
    if (!member.pending.empty()) return fail(m, "ends while step ", member.pending[0].post, " is pending");
    if (member.sent_bytes != schedule.sent_bytes) {
      return fail(m, "sent ", member.sent_bytes, " bytes and declares ", schedule.sent_bytes);
    }
    if (!check_result(m)) return false;
    if (schedule.uses_windows) {
      member.base += schedule.flag_span;
      ++member.windows_run;
    }
    ++member.operation;
    member.entered = false;
    member.next_step = 0;
    return true;
  }

  bool check_result(size_t m) {
    const Member& member = members_[m];
    const Problem& problem = operation_of(m).problem;
    if (problem.kind == OpKind::barrier) {
      for (size_t other = 0; other < members_.size(); ++other) {
        const uint32_t entered = entered_at_[member.operation][other];
        if (entered == 0 || member.clock[other] < entered) return fail(m, "leaves before ", other, " has entered");
      }
      report_.rounds[member.operation] = std::max(report_.rounds[member.operation], member.chain);
      return true;
    }
    const bool canonical = is_canonical(schedule_of(m).algorithm, problem.kind);
    std::vector<uint64_t>& trees = trees_[member.operation];
    const std::vector<Value>& got = memory_of(m, Buffer::output);
    for (size_t e = 0; e < got.size(); ++e) {
      const Value want = wanted_[member.operation].of(static_cast<int>(m), e);
      if (got[e].form != want.form || got[e].parts != want.parts) {
        return fail(m, "output element ", e, " is ",
                    got[e].form == want.form ? "made of the wrong parts" : name_of(got[e].form));
      }
      const bool reduces = traits_of(problem.kind).reduces;
      if ((canonical || !reduces) && got[e].tree != want.tree) return fail(m, "output element ", e, " is out of order");
      if (problem.kind == OpKind::allreduce) {
        if (trees.empty()) trees.assign(got.size(), 0);
        if (trees[e] == 0) trees[e] = got[e].tree;
        if (trees[e] != got[e].tree) return fail(m, "output element ", e, " differs between members");
      }
      report_.rounds[member.operation] = std::max(report_.rounds[member.operation], got[e].chain);
    }
    return true;
  }

  // ---- memory -------------------------------------------------------------------------------------------------------

  // The memory that a buffer is.
  Buffer home_of(size_t m, Buffer buffer) const {
    if (buffer == Buffer::acc && schedule_of(m).acc_is_output) return Buffer::output;
    if (buffer == Buffer::input && in_place(operation_of(m).problem)) return Buffer::output;
    return buffer;
  }

  std::vector<Value>& memory_of(size_t m, Buffer home) { return members_[m].memory[static_cast<size_t>(home)]; }

  size_t bytes_in(size_t m, Buffer buffer) const {
    const DType dtype = operation_of(m).problem.dtype;
    return bytes_of(buffer == Buffer::acc ? accumulator_of(dtype) : dtype);
  }
  // Whether elements there have the accumulator's width, where that makes a difference.
  bool is_wide(size_t m, Buffer buffer) const { return buffer == Buffer::acc && widens(operation_of(m).problem.dtype); }

  bool check_region(size_t m, const Region& region) {
    if (!options_.long_steps && region.count_elems * bytes_in(m, region.buffer) > kChunkBytes) {
      return fail(m, "moves more than a chunk");
    }
    const size_t end = region.offset_elems + region.count_elems;
    size_t size = 0;
    if (region.buffer == Buffer::window) {
      if (region.member < 0 || static_cast<size_t>(region.member) >= members_.size()) return fail(m, "whose window?");
      if (!schedule_of(m).uses_windows) return fail(m, "uses windows and does not say so");
      size = options_.window_bytes / bytes_in(m, region.buffer);
    } else {
      size = memory_of(m, home_of(m, region.buffer)).size();
    }
    if (end > size) return fail(m, name_of(region.buffer), " has ", size, " elements, element ", end, " is used");
    return true;
  }

  bool check_pending(size_t m, const Region& region, bool writes) {
    if (region.buffer == Buffer::window || region.count_elems == 0) return true;
    const Buffer home = home_of(m, region.buffer);
    const size_t begin = region.offset_elems, end = begin + region.count_elems;
    for (const Pending& pending : members_[m].pending) {
      if (pending.memory != home || pending.end <= begin || end <= pending.begin) continue;
      if (!pending.is_send || writes) {
        return fail(m, writes ? "writes" : "reads", " what step ", pending.post,
                    pending.is_send ? " sends" : " receives");
      }
    }
    return true;
  }

  bool read(size_t m, const Region& region, std::vector<Value>& values) {
    if (!check_region(m, region) || !check_pending(m, region, false)) return false;
    values.resize(region.count_elems);
    if (region.buffer == Buffer::window) return read_window(m, region, values);
    const std::vector<Value>& memory = memory_of(m, home_of(m, region.buffer));
    for (size_t e = 0; e < region.count_elems; ++e) {
      values[e] = memory[region.offset_elems + e];
      if (values[e].form == Form::none) {
        return fail(m, "reads ", name_of(region.buffer), ' ', region.offset_elems + e, ", which nobody wrote");
      }
    }
    return true;
  }

  bool write(size_t m, const Region& region, const std::vector<Value>& values) {
    if (values.size() != region.count_elems) return fail(m, "regions differ in length");
    if (region.buffer == Buffer::input) return fail(m, "writes into input");
    if (!check_region(m, region) || !check_pending(m, region, true)) return false;
    if (region.buffer == Buffer::window) return write_window(m, region, values);
    std::vector<Value>& memory = memory_of(m, home_of(m, region.buffer));
    std::copy(values.begin(), values.end(), memory.begin() + static_cast<std::ptrdiff_t>(region.offset_elems));
    return true;
  }

  WindowRange window_range(size_t m, const Region& region) const {
    const size_t half = members_[m].windows_run % 2 * options_.window_bytes;
    const size_t bytes_each = bytes_in(m, Buffer::window);
    return {static_cast<size_t>(region.member), half + region.offset_elems * bytes_each, bytes_each,
            region.count_elems};
  }

  bool read_window(size_t m, const Region& region, std::vector<Value>& values) {
    const std::string fault = windows_.read(m, members_[m].clock, window_range(m, region), values);
    return fault.empty() || fail(m, fault);
  }

  bool write_window(size_t m, const Region& region, const std::vector<Value>& values) {
    if (static_cast<size_t>(region.member) != m) return fail(m, "writes the window of ", region.member);
    const std::string fault = windows_.write(members_[m].clock, window_range(m, region), values);
    return fault.empty() || fail(m, fault);
  }

  // ---- steps --------------------------------------------------------------------------------------------------------

  bool valid_peer(size_t m, int peer) {
    if (peer >= 0 && static_cast<size_t>(peer) < members_.size() && static_cast<size_t>(peer) != m) return true;
    return fail(m, "no such peer: ", peer);
  }

  // Whether the step can be made now. A broken step is ready, to be found by make().
  bool ready(size_t m, const Step& step) {
    const Member& member = members_[m];
    if (step.kind == StepKind::wait_send || step.kind == StepKind::wait_recv) {
      return step.index >= member.transfers.size() || member.transfers[step.index] != Transfer::posted;
    }
    if (step.kind == StepKind::wait_flag) {
      if (step.index >= kFlagCount || step.peer < 0 || static_cast<size_t>(step.peer) >= members_.size()) return true;
      const std::vector<Raised>& raised = flags_[static_cast<size_t>(step.peer) * kFlagCount + step.index];
      return member.base + step.value == 0 || (!raised.empty() && raised.back().value >= member.base + step.value);
    }
    return true;
  }

  bool make(size_t m, const Step& step) {
    switch (step.kind) {
      case StepKind::post_send:
        return post_send(m, step);
      case StepKind::post_recv:
        return post_recv(m, step);
      case StepKind::wait_send:
        return end_transfer(m, step, true);
      case StepKind::wait_recv:
        return end_transfer(m, step, false);
      case StepKind::copy:
        return copy(m, step);
      case StepKind::load:
        return convert(m, step, Form::raw, Form::partial);
      case StepKind::finish:
        return convert(m, step, Form::partial, Form::result);
      case StepKind::reduce:
        return reduce(m, step);
      case StepKind::reduce_all:
        return reduce_all(m, step);
      case StepKind::signal:
        return signal(m, step);
      case StepKind::wait_flag:
        return wait_flag(m, step);
    }
    return fail(m, "unknown step");
  }

  bool copy(size_t m, const Step& step) {
    if (is_wide(m, step.src.buffer) || is_wide(m, step.dst.buffer)) return fail(m, "copies what is wide");
    if (!read(m, step.src, left_)) return false;
    const bool onto_itself = home_of(m, step.src.buffer) == home_of(m, step.dst.buffer) &&
                             step.src.buffer != Buffer::window && step.src.offset_elems == step.dst.offset_elems &&
                             step.src.count_elems == step.dst.count_elems;
    return onto_itself || write(m, step.dst, left_);
  }

  bool check_form(size_t m, const std::vector<Value>& values, Form form) {
    for (const Value& value : values) {
      if (value.form != form) return fail(m, "takes ", name_of(form), " values and finds ", name_of(value.form));
    }
    return true;
  }

  // Partial sums must stand where they fit: in acc, or anywhere if the dtype does not widen.
  bool holds_partial(size_t m, const Region& region) {
    if (!widens(operation_of(m).problem.dtype) || region.buffer == Buffer::acc) return true;
    return fail(m, "partial sums do not fit into ", name_of(region.buffer));
  }

  bool convert(size_t m, const Step& step, Form from, Form to) {
    const Region& partial = to == Form::partial ? step.dst : step.src;
    const Region& narrow = to == Form::partial ? step.src : step.dst;
    if (!holds_partial(m, partial)) return false;
    if (is_wide(m, narrow.buffer)) return fail(m, "takes acc for the batch's dtype");
    if (!read(m, step.src, left_) || !check_form(m, left_, from)) return false;
    for (Value& value : left_) value.form = to;
    return write(m, step.dst, left_);
  }

  bool reduce(size_t m, const Step& step) {
    for (const Region* region : {&step.dst, &step.src, &step.src2}) {
      if (!holds_partial(m, *region)) return false;
    }
    if (!read(m, step.src, left_) || !read(m, step.src2, right_)) return false;
    if (left_.size() != right_.size()) return fail(m, "regions differ in length");
    if (!check_form(m, left_, Form::partial) || !check_form(m, right_, Form::partial)) return false;
    for (size_t e = 0; e < left_.size(); ++e) left_[e] = merged(left_[e], right_[e]);
    return write(m, step.dst, left_);
  }

  bool reduce_all(size_t m, const Step& step) {
    const Schedule& schedule = schedule_of(m);
    if (step.source_count != members_.size() || step.first_source + step.source_count > schedule.sources.size()) {
      return fail(m, "needs a source for each member");
    }
    all_.resize(members_.size());
    for (size_t i = 0; i < members_.size(); ++i) {
      const Region& source = schedule.sources[step.first_source + i];
      if (is_wide(m, source.buffer)) return fail(m, "takes acc for the batch's dtype");
      if (!read(m, source, all_[i]) || !check_form(m, all_[i], Form::raw)) return false;
      if (all_[i].size() != step.dst.count_elems) return fail(m, "regions differ in length");
    }
    for (const Merge& merge : merges()) {
      auto& into = all_[static_cast<size_t>(merge.left)];
      const auto& from = all_[static_cast<size_t>(merge.right)];
      for (size_t e = 0; e < into.size(); ++e) into[e] = merged(into[e], from[e]);
    }
    for (Value& value : all_[0]) value.form = Form::result;
    return write(m, step.dst, all_[0]);
  }

  bool post_send(size_t m, const Step& step) {
    Member& member = members_[m];
    if (!valid_peer(m, step.peer)) return false;
    if (step.src.buffer == Buffer::window) return fail(m, "sends from a window");
    if (!read(m, step.src, left_)) return false;
    const auto post = static_cast<uint32_t>(member.next_step);
    member.sent_bytes += step.src.count_elems * bytes_in(m, step.src.buffer);
    ++report_.messages;
    auto& queue = messages_[m * members_.size() + static_cast<size_t>(step.peer)];
    queue.push_back({member.operation, post, left_, is_wide(m, step.src.buffer), member.clock, member.chain + 1});
    if (clocks_) ++member.clock[m];
    member.transfers[post] = options_.buffered ? Transfer::done : Transfer::posted;
    add_pending(m, post, true, step.src);
    return match(m, static_cast<size_t>(step.peer));
  }

  bool post_recv(size_t m, const Step& step) {
    Member& member = members_[m];
    if (!valid_peer(m, step.peer)) return false;
    if (step.dst.buffer == Buffer::window) return fail(m, "receives into a window");
    if (step.dst.buffer == Buffer::input) return fail(m, "receives into input");
    if (!check_region(m, step.dst) || !check_pending(m, step.dst, true)) return false;
    const auto post = static_cast<uint32_t>(member.next_step);
    member.transfers[post] = Transfer::posted;
    add_pending(m, post, false, step.dst);
    expected_[static_cast<size_t>(step.peer) * members_.size() + m].push_back({member.operation, post});
    return match(static_cast<size_t>(step.peer), m);
  }

  void add_pending(size_t m, uint32_t post, bool is_send, const Region& region) {
    members_[m].pending.push_back(
        {post, is_send, home_of(m, region.buffer), region.offset_elems, region.offset_elems + region.count_elems});
  }

  // The first message of a pair that is still on its way goes to the first who expects one.
  bool match(size_t from, size_t to) {
    const size_t pair = from * members_.size() + to;
    if (messages_[pair].empty() || expected_[pair].empty()) return true;
    Message message = std::move(messages_[pair].front());
    const Expected expected = expected_[pair].front();
    messages_[pair].pop_front();
    expected_[pair].pop_front();
    if (message.operation != expected.operation) return fail(to, "gets a message of operation ", message.operation);
    const Region& dst = schedule_of(to).steps[expected.post].dst;
    if (message.values.size() != dst.count_elems || message.wide != is_wide(to, dst.buffer)) {
      return fail(to, "step ", expected.post, " expects ", dst.count_elems, " elements from ", from, " and gets ",
                  message.values.size(), message.wide ? " wide ones" : "", " of its step ", message.post);
    }
    for (Value& value : message.values) ++value.chain;
    std::vector<Value>& memory = memory_of(to, home_of(to, dst.buffer));
    std::copy(message.values.begin(), message.values.end(),
              memory.begin() + static_cast<std::ptrdiff_t>(dst.offset_elems));
    Member& receiver = members_[to];
    receiver.transfers[expected.post] = Transfer::done;
    receiver.chains[expected.post] = message.chain;
    if (clocks_) receiver.received[expected.post] = std::move(message.clock);
    if (!options_.buffered) members_[from].transfers[message.post] = Transfer::done;
    return true;
  }

  bool end_transfer(size_t m, const Step& step, bool is_send) {
    Member& member = members_[m];
    const StepKind wanted = is_send ? StepKind::post_send : StepKind::post_recv;
    if (step.index >= member.next_step || schedule_of(m).steps[step.index].kind != wanted) {
      return fail(m, "step ", step.index, " posted nothing of the kind");
    }
    if (member.transfers[step.index] != Transfer::done) return fail(m, "waits twice for step ", step.index);
    member.transfers[step.index] = Transfer::waited;
    std::erase_if(member.pending, [&](const Pending& pending) { return pending.post == step.index; });
    if (is_send) return true;
    member.chain = std::max(member.chain, member.chains[step.index]);
    if (clocks_) join(member.clock, member.received[step.index]);
    return true;
  }

  bool signal(size_t m, const Step& step) {
    Member& member = members_[m];
    const Schedule& schedule = schedule_of(m);
    if (step.index >= kFlagCount) return fail(m, "no such flag: ", step.index);
    if (!schedule.uses_windows || step.value > schedule.flag_span) return fail(m, "raises a flag beyond flag_span");
    std::vector<Raised>& raised = flags_[m * kFlagCount + step.index];
    const uint64_t value = member.base + step.value;
    if (!raised.empty() && raised.back().value >= value) return fail(m, "a flag does not grow");
    raised.push_back({value, member.clock});
    ++member.clock[m];
    return true;
  }

  bool wait_flag(size_t m, const Step& step) {
    Member& member = members_[m];
    if (!valid_peer(m, step.peer)) return false;
    if (step.index >= kFlagCount) return fail(m, "no such flag: ", step.index);
    if (step.value > schedule_of(m).flag_span) return fail(m, "waits for a flag beyond flag_span");
    // What the earliest value that is enough says, not what the flag happens to say by now.
    const std::vector<Raised>& raised = flags_[static_cast<size_t>(step.peer) * kFlagCount + step.index];
    const uint64_t value = member.base + step.value;
    if (value == 0) return true;
    const auto enough = std::lower_bound(raised.begin(), raised.end(), value,
                                         [](const Raised& one, uint64_t wanted) { return one.value < wanted; });
    if (enough == raised.end() || enough->value != value) {
      return fail(m, "waits until flag ", step.index, " of ", step.peer, " is ", step.value, ", which it never raises");
    }
    join(member.clock, enough->clock);
    return true;
  }

  const std::vector<Merge>& merges() {
    if (merges_.empty()) merges_ = canonical_merges(static_cast<int>(members_.size()));
    return merges_;
  }

  const std::span<const CheckedOperation> operations_;
  const CheckOptions options_;
  Random random_;
  std::vector<Member> members_;
  std::vector<std::deque<Message>> messages_;   // from * p + to
  std::vector<std::deque<Expected>> expected_;  // from * p + to
  std::vector<std::vector<Raised>> flags_;      // member * kFlagCount + flag
  CheckedWindows windows_;
  std::vector<Clock> entered_at_;
  std::vector<Wanted> wanted_;
  std::vector<std::vector<uint64_t>> trees_;  // what the first member to end has
  std::vector<Merge> merges_;
  std::vector<Value> left_, right_;
  std::vector<std::vector<Value>> all_;
  bool clocks_ = false;
  CheckReport report_;
  Status status_;
};

}  // namespace

Result<CheckReport> check(std::span<const CheckedOperation> operations, const CheckOptions& options) {
  return Checker(operations, options).run();
}

CheckedOperation plan_all(const Algorithm& algorithm, Problem problem, const Surroundings& surroundings) {
  CheckedOperation operation;
  for (int me = 0; me < problem.member_count; ++me) {
    problem.me = me;
    if (problem.kind == OpKind::allgather) problem.count_elems = problem.counts[static_cast<size_t>(me)];
    operation.schedules.push_back(algorithm.plan(problem, surroundings));
  }
  operation.problem = std::move(problem);
  return operation;
}

}  // namespace halay::collective
