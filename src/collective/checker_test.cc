// The checker notices what it is there for: every single broken step, and the faults that only show between operations.
#include "collective/checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "base/text.h"
#include "collective/builder.h"

namespace halay::collective {
namespace {

using testing::HasSubstr;

constexpr size_t kWindowBytes = 512;

Problem allreduce_of(int members, size_t count_elems) {
  Problem problem;
  problem.member_count = members;
  problem.count_elems = count_elems;
  return problem;
}

Surroundings small_chunks(size_t chunk_elems = 8) {
  Surroundings surroundings;
  surroundings.window_bytes = kWindowBytes;
  surroundings.inline_bytes = 64;
  surroundings.chunk_elems = chunk_elems;
  return surroundings;
}

// What is wrong, found by some interleaving; empty if nothing is.
std::string fault_in(const std::vector<CheckedOperation>& operations) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    CheckOptions options;
    options.seed = seed;
    options.window_bytes = kWindowBytes;
    options.buffered = seed % 2 == 1;
    options.in_place = seed > 2;
    const Result<CheckReport> report = check(operations, options);
    if (!report.ok()) return report.status().text();
  }
  return {};
}

// ---- mutations -----------------------------------------------------------------------------------------------------

struct Mutation {
  std::string name;
  // Breaks the step; false if it does not apply.
  bool (*apply)(Step& step, int members);
};

Region* first_region(Step& step) {
  return step.dst.count_elems > 0 ? &step.dst : step.src.count_elems > 0 ? &step.src : nullptr;
}

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> kMutations = {
      {"dropped",
       [](Step& step, int) {
         step = Step{};
         return true;
       }},
      {"one element on",
       [](Step& step, int) {
         Region* region = first_region(step);
         if (region) ++region->offset_elems;
         return region != nullptr;
       }},
      {"one element less",
       [](Step& step, int) {
         Region* region = first_region(step);
         if (region) --region->count_elems;
         return region != nullptr;
       }},
      {"another peer",
       [](Step& step, int members) {
         if (step.peer < 0 || members < 3) return false;
         step.peer = static_cast<int16_t>((step.peer + 1) % members);
         return true;
       }},
      {"another flag value",
       [](Step& step, int) {
         if (step.kind != StepKind::signal && step.kind != StepKind::wait_flag) return false;
         step.value -= 1;
         return true;
       }},
      {"waits for the next post",
       [](Step& step, int) {
         if (step.kind != StepKind::wait_send && step.kind != StepKind::wait_recv) return false;
         ++step.index;
         return true;
       }},
      {"sides swapped",
       [](Step& step, int) {
         if (step.kind != StepKind::reduce) return false;
         std::swap(step.src, step.src2);
         return true;
       }},
      {"window of another",
       [](Step& step, int members) {
         Region& region = step.src.buffer == Buffer::window ? step.src : step.dst;
         if (region.buffer != Buffer::window) return false;
         region.member = static_cast<int16_t>((region.member + 1) % members);
         return true;
       }},
  };
  return kMutations;
}

// Uneven parts, but for windows: there, members wait for each other where one of them has nothing to read, too.
Surroundings surroundings_for(const Algorithm& algorithm) {
  return small_chunks(algorithm.name == "shm_owner" ? 20 : 8);
}

Problem problem_for(const Algorithm& algorithm, int members) {
  const OpKind kind = algorithm.kind;
  Problem problem = allreduce_of(members, algorithm.name == "shm_inline" ? 7 : algorithm.needs_windows ? 120 : 101);
  problem.kind = kind;
  if (kind == OpKind::barrier) problem.count_elems = 0;
  if (kind == OpKind::reducescatter || kind == OpKind::allgather) {
    problem.counts.assign(static_cast<size_t>(members), 19);
    if (!algorithm.needs_windows) problem.counts[0] = 25;
    problem.count_elems = problem.counts[0] + 19 * (static_cast<size_t>(members) - 1);
  }
  if (kind == OpKind::alltoall) {
    problem.counts.assign(static_cast<size_t>(members * members), 11);
    problem.count_elems = 11 * static_cast<size_t>(members) + 3;  // rows that no split names
  }
  return problem;
}

TEST(Checker, NoticesEveryBrokenStepOfEveryAlgorithm) {
  size_t made = 0, noticed = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const int members : {1, 2, 4, 5}) {
      const Problem problem = problem_for(algorithm, members);
      if (!algorithm.fits(problem, surroundings_for(algorithm))) continue;
      const CheckedOperation sound = plan_all(algorithm, problem, surroundings_for(algorithm));
      // Windows show some faults only two operations later.
      std::vector<CheckedOperation> operations(algorithm.needs_windows ? 3 : 1, sound);
      ASSERT_EQ(fault_in(operations), "") << algorithm.name;
      for (const int member : {0, members - 1}) {
        std::vector<Step>& steps = operations[0].schedules[static_cast<size_t>(member)].steps;
        for (size_t i = 0; i < steps.size(); ++i) {
          const Step step = steps[i];
          for (const Mutation& mutation : mutations()) {
            if (mutation.name == "sides swapped" && !algorithm.canonical) continue;  // any order is as good
            if (!mutation.apply(steps[i], members)) continue;
            ++made;
            const bool found = !fault_in(operations).empty();
            noticed += found ? 1 : 0;
            EXPECT_TRUE(found) << algorithm.name << ' ' << name_of(algorithm.kind) << ", member " << member << " of "
                               << members << ", step " << i << " (" << name_of(step.kind) << ") " << mutation.name;
            steps[i] = step;
          }
        }
      }
    }
  }
  std::cout << "noticed " << noticed << " of " << made << " broken steps\n";
  EXPECT_GT(made, 1000u);
}

TEST(Checker, NoticesWrongDeclarations) {
  const CheckedOperation sound = plan_all(algorithms()[4], allreduce_of(4, 20), small_chunks());
  ASSERT_EQ(sound.schedules[0].algorithm, "recursive_doubling");
  CheckedOperation broken = sound;
  broken.schedules[1].sent_bytes += 4;
  EXPECT_THAT(fault_in({broken}), HasSubstr("declares"));
  broken = sound;
  broken.schedules[2].staging_elems -= 1;
  EXPECT_THAT(fault_in({broken}), HasSubstr("staging has 19 elements"));
  broken = sound;
  broken.schedules[3].flag_span = 1;
  EXPECT_THAT(fault_in({broken}), HasSubstr("members differ"));
}

// ---- faults by hand ------------------------------------------------------------------------------------------------

// Both members reduce the other's window without waiting for it.
CheckedOperation without_waiting(bool wait) {
  CheckedOperation operation;
  operation.problem = allreduce_of(2, 4);
  for (int me = 0; me < 2; ++me) {
    Problem problem = operation.problem;
    problem.me = me;
    Builder builder("shm_everyone", problem);
    const Part part{0, 4};
    builder.copy(window(me, part), input(part));
    builder.signal(0, 1);
    if (wait) builder.wait_flags(0, 1);
    builder.reduce_all(output(part), std::vector<Region>{window(0, part), window(1, part)});
    operation.schedules.push_back(builder.take(1, 1));
  }
  return operation;
}

TEST(Checker, NoticesAWindowThatIsReadBeforeItIsWritten) {
  EXPECT_EQ(fault_in({without_waiting(true)}), "");
  EXPECT_THAT(fault_in({without_waiting(false)}), testing::AnyOf(HasSubstr("races"), HasSubstr("nobody wrote")));
}

// Member 0 writes, the others read: nobody hears from the readers.
CheckedOperation deaf_writer() {
  CheckedOperation operation;
  operation.problem = allreduce_of(2, 4);
  operation.problem.kind = OpKind::broadcast;
  for (int me = 0; me < 2; ++me) {
    Problem problem = operation.problem;
    problem.me = me;
    Builder builder("window_broadcast", problem);
    const Part part{0, 4};
    if (me == 0) {
      builder.copy(window(0, part), input(part));
      builder.signal(0, 1);
      builder.copy(output(part), input(part));
    } else {
      builder.wait_flag(0, 0, 1);
      builder.copy(output(part), window(0, part));
    }
    operation.schedules.push_back(builder.take(1, 1));
  }
  return operation;
}

TEST(Checker, NoticesAScheduleThatDoesNotHearFromEverybodyTwoOperationsLater) {
  EXPECT_EQ(fault_in({deaf_writer(), deaf_writer()}), "");
  EXPECT_THAT(fault_in({deaf_writer(), deaf_writer(), deaf_writer()}), HasSubstr("may still read"));
}

TEST(Checker, NoticesADeadlock) {
  CheckedOperation operation;
  operation.problem = allreduce_of(2, 0);
  for (int me = 0; me < 2; ++me) {
    Problem problem = operation.problem;
    problem.me = me;
    Builder builder("recursive_doubling", problem);
    Post received = builder.recv(1 - me, staging({0, 1}));
    builder.wait(received);
    Post sent = builder.send(1 - me, staging({0, 1}));
    builder.wait(sent);
    operation.schedules.push_back(builder.take(1));
  }
  EXPECT_THAT(fault_in({operation}), HasSubstr("nobody can move: member"));
}

TEST(Checker, NoticesABarrierThatDoesNotHold) {
  CheckedOperation operation;
  operation.problem = allreduce_of(3, 0);
  operation.problem.kind = OpKind::barrier;
  operation.schedules.assign(3, Schedule{});
  EXPECT_THAT(fault_in({operation}), HasSubstr("before"));
}

}  // namespace
}  // namespace halay::collective
