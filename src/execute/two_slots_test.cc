// The exchange that the tiny path and the window Schedules rest on, as a model that is run through every order of its
// steps: a member writes its slot word by word, raises its counter, waits for all counters, and reads all slots word by
// word. Two alternating slots are enough because everybody hears from everybody; the model also shows that less is not.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace halay::execute {
namespace {

struct Model {
  int members = 2;
  int operations = 4;
  int slots = 2;
  // This member takes no part in this operation: it neither writes nor waits nor reads, and nobody waits for it.
  int absent_member = -1;
  int absent_from = 0, absent_to = 0;

  bool takes_part(int member, int operation) const {
    return member != absent_member || operation < absent_from || operation > absent_to;
  }
};

struct Slot {
  uint8_t word[2] = {0, 0};
};
struct MemberState {
  uint8_t operation = 1;  // the one in work
  uint8_t step = 0;
  uint8_t counter = 0;  // the last operation that it published
  Slot slots[2];
};
using State = std::vector<MemberState>;

std::string key_of(const State& state) {
  return std::string(reinterpret_cast<const char*>(state.data()), state.size() * sizeof(MemberState));
}

class Explorer {
 public:
  explicit Explorer(Model model) : model_(model) {}

  // Every order of steps from the start. True if no member ever reads a word of another operation, and none is stuck.
  bool holds() {
    std::vector<State> open{State(static_cast<size_t>(model_.members))};
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      if (!seen_.insert(key_of(state)).second) continue;
      bool moved = false, all_done = true;
      for (int member = 0; member < model_.members; ++member) {
        if (state[static_cast<size_t>(member)].operation > model_.operations) continue;
        all_done = false;
        State next = state;
        if (!step(next, member)) continue;
        if (wrong_) return false;
        moved = true;
        open.push_back(std::move(next));
      }
      if (!moved && !all_done) return false;
    }
    return true;
  }
  size_t states() const { return seen_.size(); }

 private:
  // One step of one member; false if it must wait. Steps of an operation: write word 0, write word 1, publish; then for
  // each member: hear its counter; then for each member: read word 0, read word 1.
  bool step(State& state, int me) {
    MemberState& self = state[static_cast<size_t>(me)];
    if (!model_.takes_part(me, self.operation)) {
      self.operation++;
      return true;
    }
    const int slot = self.operation % model_.slots;
    const int p = model_.members;
    const int at = self.step;
    if (at < 2) {
      self.slots[slot].word[at] = self.operation;
    } else if (at == 2) {
      self.counter = self.operation;
    } else if (at < 3 + p) {
      const int peer = at - 3;
      if (model_.takes_part(peer, self.operation) && state[static_cast<size_t>(peer)].counter < self.operation)
        return false;
    } else {
      const int peer = (at - 3 - p) / 2, word = (at - 3 - p) % 2;
      const uint8_t read = state[static_cast<size_t>(peer)].slots[slot].word[word];
      wrong_ = model_.takes_part(peer, self.operation) && read != self.operation;
    }
    if (++self.step == 3 + p + 2 * p) {
      self.step = 0;
      self.operation++;
    }
    return true;
  }

  Model model_;
  std::set<std::string> seen_;
  bool wrong_ = false;
};

TEST(TwoSlots, AreEnoughInEveryOrderOfSteps) {
  for (const int members : {1, 2, 3, 4}) {
    Explorer explorer({members, members >= 3 ? 4 : 6});
    EXPECT_TRUE(explorer.holds()) << members << " members";
    std::printf("%d members: %zu states\n", members, explorer.states());
    EXPECT_GT(explorer.states(), members >= 3 ? 5'000u : 1u);
  }
}

TEST(TwoSlots, AreNeeded) {
  Model one;
  one.slots = 1;
  EXPECT_FALSE(Explorer(one).holds());
}

// Why a lane does without windows while a member has joined: it may still read when the others are two operations
// further.
TEST(TwoSlots, AreNotEnoughWhereAMemberStaysAway) {
  Model model{3, 4};
  model.absent_member = 2;
  model.absent_from = 2;
  model.absent_to = 4;
  EXPECT_FALSE(Explorer(model).holds());
}

}  // namespace
}  // namespace halay::execute
