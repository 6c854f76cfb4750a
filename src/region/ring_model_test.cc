// The ring of ring.h with two cells, and the two-slot exchange of the windows' lines, step by step.
#include <gtest/gtest.h>

#include "region/model_check_for_test.h"

namespace halay::region {
namespace {

constexpr int kMessages = 5;

struct RingWorld {
  std::array<int, 2> payload{}, tag{};  // a cell each
  int cells_taken = 0;
  int writer_step = 0, next_write = 0;
  int reader_step = 0, next_read = 0, read_value = 0;
  bool wrong = false;
  auto operator<=>(const RingWorld&) const = default;
};

struct RingFlaws {
  bool tag_before_payload = false;
  bool taken_before_read = false;
};

// Writer: wait for a free cell; payload; tag.      Reader: wait for the tag; read the payload; count it as taken.
Exploration explore_ring(RingFlaws flaws) {
  const auto put = [](RingWorld& w, bool payload) {
    const auto cell = static_cast<size_t>(w.next_write % 2);
    (payload ? w.payload : w.tag)[cell] = w.next_write + 1;
  };
  const auto writer = [flaws, put](RingWorld& w) {
    if (w.next_write == kMessages) return false;
    if (w.writer_step == 0 && w.next_write - w.cells_taken == 2) return false;
    if (w.writer_step == 1) put(w, !flaws.tag_before_payload);
    if (w.writer_step == 2) put(w, flaws.tag_before_payload), ++w.next_write;
    w.writer_step = (w.writer_step + 1) % 3;
    return true;
  };
  const auto reader = [flaws](RingWorld& w) {
    const auto cell = static_cast<size_t>(w.next_read % 2);
    if (w.next_read == kMessages) return false;
    if (w.reader_step == 0 && w.tag[cell] != w.next_read + 1) return false;
    if (w.reader_step == (flaws.taken_before_read ? 2 : 1)) w.wrong |= w.payload[cell] != w.next_read + 1;
    if (w.reader_step == (flaws.taken_before_read ? 1 : 2)) ++w.cells_taken;
    if (w.reader_step == 2) ++w.next_read;
    w.reader_step = (w.reader_step + 1) % 3;
    return true;
  };
  return explore<RingWorld>(RingWorld{}, {writer, reader}, [](const RingWorld& w, bool ending) -> std::string {
    if (w.wrong) return "read what was not written";
    if (ending && w.next_read != kMessages) return "stuck";
    return "";
  });
}

TEST(RingModel, DeliversEveryFrameOnceAndInOrder) {
  const Exploration all = explore_ring({});
  EXPECT_TRUE(all.faults.empty()) << all.faults.front();
  EXPECT_GT(all.states, 30u);
  EXPECT_EQ(all.endings, 1u);
}

TEST(RingModel, BreaksWhenTheTagIsStoredBeforeThePayload) {
  EXPECT_FALSE(explore_ring({.tag_before_payload = true}).faults.empty());
}

TEST(RingModel, BreaksWhenACellIsGivenBackBeforeItIsRead) {
  EXPECT_FALSE(explore_ring({.taken_before_read = true}).faults.empty());
}

constexpr int kMembers = 3, kRounds = 4;

struct SlotWorld {
  std::array<std::array<int, 2>, kMembers> slot{};
  std::array<int, kMembers> flag{}, round{}, step{};
  bool wrong = false;
  auto operator<=>(const SlotWorld&) const = default;
};

struct SlotShape {
  int slots = 2;
  bool only_first_writes = false;  // a broadcast: nobody answers
  bool credit = false;             // the writer waits for the readers' counters
};

// Member m, round k: slot[k % slots] = k + 1; flag = k + 1; then for each other: wait for its flag, read its slot.
Exploration explore_slots(SlotShape shape) {
  std::vector<std::function<bool(SlotWorld&)>> actions;
  for (int me = 0; me < kMembers; ++me) {
    actions.push_back([me, shape](SlotWorld& w) {
      const auto m = static_cast<size_t>(me);
      const int round = w.round[m];
      const auto slot = static_cast<size_t>(round % shape.slots);
      if (round == kRounds) return false;
      const bool writes = !shape.only_first_writes || me == 0;
      const int step = w.step[m];
      if (step == 0 && writes) {
        for (size_t other = 1; shape.credit && other < kMembers; ++other) {
          if (w.flag[other] + shape.slots <= round) return false;  // its slot is not free yet
        }
        w.slot[m][slot] = round + 1;
      } else if (step == 1 && writes) {
        w.flag[m] = round + 1;
      } else if (step >= 2) {
        const auto from = static_cast<size_t>(step - 2);
        const bool reads = from != m && (!shape.only_first_writes || from == 0);
        if (reads && w.flag[from] < round + 1) return false;
        if (reads) w.wrong |= w.slot[from][slot] != round + 1;
      }
      if (++w.step[m] == 2 + kMembers) {
        w.step[m] = 0, ++w.round[m];
        if (!writes) w.flag[m] = w.round[m];  // what it has read so far
      }
      return true;
    });
  }
  return explore<SlotWorld>(SlotWorld{}, actions, [](const SlotWorld& w, bool ending) -> std::string {
    if (w.wrong) return "read another round's value";
    return ending && w.round != std::array{kRounds, kRounds, kRounds} ? "stuck" : "";
  });
}

TEST(SlotModel, TwoSlotsSufficeWhereEverybodyHearsFromEverybody) {
  const Exploration all = explore_slots({.slots = 2});
  EXPECT_TRUE(all.faults.empty()) << all.faults.front();
  EXPECT_GT(all.states, 1000u);
}

TEST(SlotModel, OneSlotDoesNotSuffice) { EXPECT_FALSE(explore_slots({.slots = 1}).faults.empty()); }

TEST(SlotModel, TwoSlotsDoNotSufficeWhereNobodyAnswers) {
  EXPECT_FALSE(explore_slots({.slots = 2, .only_first_writes = true}).faults.empty());
}

TEST(SlotModel, ACreditCounterMakesItGoodAgain) {
  const Exploration all = explore_slots({.slots = 2, .only_first_writes = true, .credit = true});
  EXPECT_TRUE(all.faults.empty()) << all.faults.front();
}

}  // namespace
}  // namespace halay::region
