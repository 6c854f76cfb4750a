// The sleep and wake protocol of sleep.h, step by step, on processors with store buffers.
#include <gtest/gtest.h>

#include "region/model_check_for_test.h"

namespace halay::region {
namespace {

enum Place { kData, kWord, kPlaceCount };

struct World {
  std::array<int, kPlaceCount> memory{};
  StoreBuffer<kPlaceCount> writer, sleeper;
  int writer_step = 0, sleeper_step = 0;
  int saw_word = 0;
  int bell = 0;
  bool asleep = false, got_data = false;
  auto operator<=>(const World&) const = default;
};

struct Fences {
  bool writer = true, sleeper = true;
};

// Writer: data = 1; fence; if (word) ring.      Sleeper: word = 1; fence; if (data) go on, else sleep until the bell.
Exploration explore_sleep(Fences fences) {
  const auto writer = [fences](World& w) {
    switch (w.writer_step) {
      case 0:
        w.writer.store(kData, 1);
        break;
      case 1:
        if (fences.writer && w.writer.count > 0) return false;
        break;
      case 2:
        w.saw_word = w.writer.load(w.memory, kWord);
        break;
      case 3:
        if (w.saw_word) w.bell = 1;
        break;
      default:
        return false;
    }
    ++w.writer_step;
    return true;
  };
  const auto sleeper = [fences](World& w) {
    switch (w.sleeper_step) {
      case 0:
        w.sleeper.store(kWord, 1);
        break;
      case 1:
        if (fences.sleeper && w.sleeper.count > 0) return false;
        break;
      case 2:
        w.got_data = w.sleeper.load(w.memory, kData) == 1;
        w.asleep = !w.got_data;
        break;
      case 3:
        if (w.asleep && !w.bell) return false;
        w.asleep = false;
        break;
      default:
        return false;
    }
    ++w.sleeper_step;
    return true;
  };
  return explore<World>(World{},
                        {writer, sleeper, [](World& w) { return w.writer.drain_one(w.memory); },
                         [](World& w) { return w.sleeper.drain_one(w.memory); }},
                        [](const World& w, bool ending) -> std::string {
                          return ending && w.asleep && w.memory[kData] == 1 ? "asleep although the data is there" : "";
                        });
}

TEST(SleepModel, NeverLosesAWakeUpWithBothFences) {
  const Exploration all = explore_sleep({.writer = true, .sleeper = true});
  EXPECT_TRUE(all.faults.empty());
  EXPECT_GT(all.states, 20u);
  EXPECT_GE(all.endings, 2u);  // one where the data was seen in time, one with the bell
}

TEST(SleepModel, LosesAWakeUpWithoutTheWritersFence) {
  EXPECT_FALSE(explore_sleep({.writer = false, .sleeper = true}).faults.empty());
}

TEST(SleepModel, LosesAWakeUpWithoutTheSleepersFence) {
  EXPECT_FALSE(explore_sleep({.writer = true, .sleeper = false}).faults.empty());
}

TEST(SleepModel, LosesAWakeUpWithoutAnyFence) {
  EXPECT_FALSE(explore_sleep({.writer = false, .sleeper = false}).faults.empty());
}

}  // namespace
}  // namespace halay::region
