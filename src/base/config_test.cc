#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace halay {
namespace {

using ::testing::HasSubstr;

Result<Config> read(std::vector<std::string> environment, std::vector<std::string> settings = {}) {
  return read_config_from(environment, settings, nullptr);
}

TEST(Config, HoldsTheDefaultsOfTheTableWhenNothingIsSet) {
  const Config config = read({}).value();
  EXPECT_EQ(config.fusion_threshold, 128 << 20);
  EXPECT_EQ(config.cycle_time_ms, 1.0);
  EXPECT_EQ(config.transport, "auto");
  EXPECT_EQ(config.op_deadline_ms(), 1'800'000);
}

TEST(Config, ReadsHorovodsNamesAndPrefersItsOwn) {
  EXPECT_EQ(read({"HOROVOD_FUSION_THRESHOLD=7"}).value().fusion_threshold, 7);
  EXPECT_EQ(read({"HOROVOD_FUSION_THRESHOLD=7", "HALAY_FUSION_THRESHOLD=8"}).value().fusion_threshold, 8);
}

TEST(Config, ReadsNoHorovodNameForKnobsOfItsOwn) {
  EXPECT_EQ(read({"HOROVOD_TRANSPORT=nonsense"}).value().transport, "auto");
}

TEST(Config, LetsSettingsWinOverTheEnvironment) {
  EXPECT_EQ(read({"HALAY_CYCLE_TIME=5"}, {"HALAY_CYCLE_TIME=0.5"}).value().cycle_time_ms, 0.5);
}

TEST(Config, TakesAnEmptyValueAsNotSet) { EXPECT_EQ(read({"HALAY_CYCLE_TIME="}).value().cycle_time_ms, 1.0); }

TEST(Config, NamesVariableValueAndWhatIsAllowed) {
  const Status number = read({"HALAY_FUSION_THRESHOLD=12x"}).status();
  EXPECT_EQ(number.code(), Code::invalid_argument);
  EXPECT_THAT(number.text(), HasSubstr("HALAY_FUSION_THRESHOLD='12x'"));
  EXPECT_THAT(number.text(), HasSubstr("whole number"));
  EXPECT_THAT(read({"HOROVOD_CYCLE_TIME=-1"}).status().text(),
              HasSubstr("HOROVOD_CYCLE_TIME='-1': must be a number from 0"));
  EXPECT_THAT(read({"HALAY_TRANSPORT=smoke"}).status().text(), HasSubstr("must be one of auto, shm, tcp"));
  EXPECT_THAT(read({"HALAY_REPRODUCIBLE=perhaps"}).status().text(), HasSubstr("0 or 1"));
  EXPECT_FALSE(read({"HALAY_CYCLE_TIME=nan"}).ok());
}

TEST(Config, UnderstandsChoicesAndFlagsInAnyCase) {
  EXPECT_EQ(read({"HALAY_LOG_LEVEL=DEBUG"}).value().log_level, "debug");
  EXPECT_TRUE(read({"HALAY_REPRODUCIBLE=Yes"}).value().reproducible);
}

TEST(Config, TakesHorovodsShutdownTimeAsTheOpDeadlineUnlessOursIsSet) {
  EXPECT_EQ(read({"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=5"}).value().op_deadline_ms(), 5000);
  EXPECT_EQ(read({"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=5", "HALAY_OP_DEADLINE_SECONDS=7"}).value().op_deadline_ms(),
            7000);
}

TEST(Config, WarnsOfUnknownVariablesWithTheNearestName) {
  std::vector<std::string> warnings;
  const std::vector<std::string> environment{"HALAY_FUSION_TRESHOLD=1", "HOROVOD_WHATEVER=1", "PATH=x"};
  ASSERT_TRUE(read_config_from(environment, {}, &warnings).ok());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("did you mean HALAY_FUSION_THRESHOLD?"));
}

TEST(Config, RefusesASettingThatIsNoSetting) {
  EXPECT_FALSE(read({}, {"CYCLE_TIME=1"}).ok());
  EXPECT_FALSE(read({}, {"HALAY_CYCLE_TIME"}).ok());
}

TEST(Config, TellsTheValueInForceOfEveryRowOfTheTable) {
  const Config config = read({"HALAY_CYCLE_TIME=2.5"}).value();
  EXPECT_EQ(knob_value(config, "HALAY_CYCLE_TIME").value(), "2.5");
  for (const KnobRow& row : knob_table()) EXPECT_TRUE(knob_value(config, row.name).ok()) << row.name;
  EXPECT_FALSE(knob_value(config, "NO_SUCH").ok());
}

TEST(Config, HasTheRowsOfTheTableOnce) {
  std::vector<std::string_view> names;
  for (const KnobRow& row : knob_table()) names.push_back(row.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace halay
