#include "launch/worker_environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace halay::launch {
namespace {

std::string value(const std::vector<std::string>& environment, std::string_view name) {
  const char* found = value_in(environment, name);
  return found != nullptr ? found : "(none)";
}

// R71 of spec/users.md.
TEST(ThreadBudget, R71FourProcessesOnEightCoresGetTwoEach) {
  const ThreadBudget budget = thread_budget(8, 4, {});
  EXPECT_EQ(budget.threads, 2);
  EXPECT_EQ(value(budget.settings, "OMP_NUM_THREADS"), "2");
  EXPECT_EQ(value(budget.settings, "TF_NUM_INTRAOP_THREADS"), "2");
  EXPECT_EQ(budget.line.substr(0, budget.line.find(" (")), "threads: 2 each for 4 processes on 8 cores");
}

TEST(ThreadBudget, R71WhatTheUserSetIsKeptAndHoldsForTheOthersToo) {
  const std::vector<std::string> environment{"OMP_NUM_THREADS=5"};
  const ThreadBudget budget = thread_budget(8, 4, environment);
  EXPECT_EQ(value(budget.settings, "OMP_NUM_THREADS"), "(none)") << "it is inherited as it is";
  EXPECT_EQ(value(budget.settings, "MKL_NUM_THREADS"), "5");
  EXPECT_NE(budget.line.find("kept as you set: OMP_NUM_THREADS"), std::string::npos) << budget.line;
}

TEST(ThreadBudget, MoreProcessesThanCoresStillGetOneThread) {
  EXPECT_EQ(thread_budget(2, 64, {}).threads, 1);
  EXPECT_GE(usable_cores(), 1);
}

TEST(ThreadBudget, AnEmptyVariableIsNotSet) {
  const std::vector<std::string> environment{"OMP_NUM_THREADS=", "OMP_NUM_THREADS_LIMIT=9"};
  EXPECT_EQ(value(thread_budget(4, 2, environment).settings, "OMP_NUM_THREADS"), "2");
}

JobSpec job() {
  JobSpec spec;
  spec.command = {"true"};
  spec.environment = {"PATH=/bin",          "HALAY_RANK=9", "HOROVOD_SIZE=9",
                      "HALAY_CYCLE_TIME=1", "EQUALS=a=b",   "HALAY_STORE=old"};
  spec.settings = {"HALAY_CYCLE_TIME=2", "HALAY_CYCLE_TIME=3"};
  return spec;
}

TEST(WorkerEnvironment, SaysWhoTheWorkerIsUnderBothNames) {
  const Slot slot{"host", 3, 8, 1, 2, 1, 4};
  const auto environment = worker_environment(job(), slot, {"unix:@store", "key"}, {});
  for (const std::string prefix : {"HALAY_", "HOROVOD_"}) {
    EXPECT_EQ(value(environment, prefix + "RANK"), "3");
    EXPECT_EQ(value(environment, prefix + "SIZE"), "8");
    EXPECT_EQ(value(environment, prefix + "LOCAL_RANK"), "1");
    EXPECT_EQ(value(environment, prefix + "LOCAL_SIZE"), "2");
    EXPECT_EQ(value(environment, prefix + "CROSS_RANK"), "1");
    EXPECT_EQ(value(environment, prefix + "CROSS_SIZE"), "4");
    EXPECT_EQ(value(environment, prefix + "HOSTNAME"), "host");
  }
  EXPECT_EQ(value(environment, "HALAY_STORE"), "unix:@store");
  EXPECT_EQ(value(environment, "HALAY_JOB_KEY"), "key");
}

TEST(WorkerEnvironment, KeepsTheRestAndEachNameOnce) {
  const auto environment = worker_environment(job(), {}, {}, thread_budget(4, 2, {}));
  EXPECT_EQ(value(environment, "PATH"), "/bin");
  EXPECT_EQ(value(environment, "EQUALS"), "a=b");
  EXPECT_EQ(value(environment, "HALAY_CYCLE_TIME"), "3") << "flags win, the last of them most";
  EXPECT_EQ(value(environment, "PYTHONUNBUFFERED"), "1");
  std::vector<std::string> names;
  for (const std::string& entry : environment) names.push_back(entry.substr(0, entry.find('=')));
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace halay::launch
