#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/plan.h"

namespace halay::collective {
namespace {

TEST(TextOfSchedule, HasALineForEachStep) {
  Problem problem;
  problem.member_count = 2;
  problem.me = 1;
  problem.count_elems = 3;
  Surroundings surroundings;
  surroundings.force_algorithm = "recursive_doubling";
  EXPECT_EQ(text_of(plan(problem, surroundings).value()),
            "recursive_doubling: 7 steps, 1 rounds, 12 bytes sent, staging 3, acc is output\n"
            "  0 load acc[0, 3) = input[0, 3)\n"
            "  1 post_recv staging[0, 3) from 0\n"
            "  2 post_send acc[0, 3) to 0\n"
            "  3 wait_recv step 1\n"
            "  4 wait_send step 2\n"
            "  5 reduce acc[0, 3) = staging[0, 3) op acc[0, 3)\n"
            "  6 finish output[0, 3) = acc[0, 3)\n");
}

TEST(TextOfSchedule, NamesWindowsFlagsAndSources) {
  Problem problem;
  problem.member_count = 2;
  problem.count_elems = 3;
  Surroundings surroundings;
  surroundings.window_bytes = 1024;
  surroundings.force_algorithm = "shm_everyone";
  const std::string lines = text_of(plan(problem, surroundings).value());
  EXPECT_THAT(lines, testing::HasSubstr("copy window of 0 [0, 3) = input[0, 3)\n"));
  EXPECT_THAT(lines, testing::HasSubstr("signal flag 0 = base + 1\n"));
  EXPECT_THAT(lines, testing::HasSubstr("wait_flag flag 0 of 1 >= base + 1\n"));
  EXPECT_THAT(lines, testing::HasSubstr("reduce_all output[0, 3) = all of input[0, 3), window of 1 [0, 3)\n"));
}

}  // namespace
}  // namespace halay::collective
