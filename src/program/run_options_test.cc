#include "program/run_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "program/config_file.h"
#include "program/findings.h"
#include "program/python_packages.h"

namespace halay::program {
namespace {

RunOptions parsed(std::vector<std::string> arguments) {
  auto options = parse_run_options(std::move(arguments));
  EXPECT_TRUE(options.ok()) << options.status().text();
  return options.ok() ? std::move(options).value() : RunOptions();
}

std::string refused(std::vector<std::string> arguments) {
  const auto options = parse_run_options(std::move(arguments));
  EXPECT_FALSE(options.ok());
  return options.status().text();
}

TEST(RunOptions, TheCommandBeginsAtTheFirstWordThatIsNoFlag) {
  const RunOptions options = parsed({"-np", "2", "--verbose", "python", "train.py", "-np", "7", "--lr=1"});
  EXPECT_EQ(options.process_count, 2);
  EXPECT_TRUE(options.verbose);
  EXPECT_EQ(options.command, (std::vector<std::string>{"python", "train.py", "-np", "7", "--lr=1"}));
  EXPECT_EQ(parsed({"-np", "2", "--", "-odd", "-np"}).command, (std::vector<std::string>{"-odd", "-np"}));
  EXPECT_EQ(parsed({"--blacklist-cooldown-range", "1", "10", "-np=3", "x"}).command, std::vector<std::string>{"x"});
}

TEST(RunOptions, FlagsBecomeSettings) {
  const RunOptions options = parsed({"-np", "1", "--fusion-threshold-mb", "64", "--no-stall-check",
                                     "--network-interface", "a", "--network-interface", "b", "--tcp", "x"});
  for (const char* setting : {"HALAY_FUSION_THRESHOLD=67108864", "HALAY_STALL_CHECK_DISABLE=1",
                              "HALAY_NETWORK_INTERFACES=a,b", "NCCL_SOCKET_IFNAME=a,b", "NCCL_IB_DISABLE=1"}) {
    EXPECT_NE(std::ranges::find(options.settings, setting), options.settings.end()) << setting;
  }
  EXPECT_TRUE(options.notes.empty());
}

TEST(RunOptions, WhatComesLaterIsNotedOncePerFlag) {
  const RunOptions options = parsed({"-np", "1", "--autotune", "--jsrun", "--min-np", "1", "x"});
  ASSERT_EQ(options.notes.size(), 3u);
  EXPECT_TRUE(std::ranges::any_of(
      options.notes, [](const std::string& note) { return note.starts_with("--autotune: no effect yet"); }));
}

TEST(RunOptions, MistakesNameTheFlagTheValueAndWhatIsAllowed) {
  EXPECT_EQ(refused({"-np", "0", "x"}), "-np 0: at least one process is needed (-np 1, -np 2, ...)");
  EXPECT_EQ(refused({"-np", "1", "--cycle-tim-ms", "x"}),
            "unknown option --cycle-tim-ms; did you mean --cycle-time-ms?");
  EXPECT_NE(refused({"-np", "1", "--cache-capacity", "-5", "x"}).find("--cache-capacity"), std::string::npos);
  EXPECT_NE(refused({"-np", "1", "--cycle-time-ms=abc", "x"}).find("HALAY_CYCLE_TIME='abc': must be a number"),
            std::string::npos);
}

TEST(RunOptions, AskedForHelpNothingElseMatters) {
  EXPECT_NE(parsed({"-np", "0", "--help"}).help.find("--cycle-time-ms"), std::string::npos);
}

TEST(MakeJob, PutsAllRanksOnThisMachine) {
  RunOptions options = parsed({"-np", "3", "-H", "localhost:2,127.0.0.1:2", "x"});
  const auto job = make_job(options, {"PATH=/bin"});
  ASSERT_TRUE(job.ok()) << job.status().text();
  ASSERT_EQ(job.value().slots.size(), 3u);
  EXPECT_EQ(job.value().slots[2].local_rank, 2);
  EXPECT_EQ(job.value().slots[2].local_size, 3);
}

TEST(MakeJob, RefusesASettingThatCannotBeUnderstood) {
  RunOptions options = parsed({"-np", "1", "x"});
  const auto job = make_job(options, {"HALAY_TRANSPORT=pigeon"});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().text(), "HALAY_TRANSPORT='pigeon': must be one of auto, shm, tcp");
}

TEST(MakeJob, SaysWhatToDoAboutOtherMachines) {
  RunOptions options = parsed({"-np", "2", "-H", "far-away:4", "x"});
  const auto job = make_job(options, {});
  ASSERT_FALSE(job.ok());
  EXPECT_EQ(job.status().code(), Code::unsupported);
  EXPECT_NE(job.status().text().find("far-away"), std::string::npos);
}

TEST(ConfigFile, IsSectionsWithScalars) {
  const auto entries = parse_config_file("---\ncontroller: gloo\nparams:\n  a_b: 'x # y'   # note\n\n  c: \"d\"\n");
  ASSERT_TRUE(entries.ok()) << entries.status().text();
  ASSERT_EQ(entries.value().size(), 3u);
  EXPECT_EQ(entries.value()[0].key, "controller");
  EXPECT_EQ(entries.value()[1].section, "params");
  EXPECT_EQ(entries.value()[1].value, "x # y");
  EXPECT_EQ(entries.value()[2].value, "d");
}

TEST(ConfigFile, AWrongLineIsNumbered) {
  for (const char* wrong : {"params:\n  word\n", "params:\n  - item\n", "a: 1\n  b: 2\n", "params:\n  : x\n"}) {
    const auto entries = parse_config_file(wrong);
    ASSERT_FALSE(entries.ok()) << wrong;
    EXPECT_NE(entries.status().text().find("line 2"), std::string::npos) << entries.status().text();
  }
}

TEST(ConfigFile, BecomesFlagsAndUnknownKeysAreIgnored) {
  const auto flags = flags_from_config({{"", "controller", "mpi"},
                                        {"params", "torus_allreduce", "False"},
                                        {"params", "nonsense", "1"},
                                        {"autotune", "log_file", "a b"},
                                        {"logging", "level", "null"}});
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags.value(), (std::vector<std::string>{"--mpi", "--no-torus-allreduce", "--autotune-log-file=a b"}));
  EXPECT_FALSE(flags_from_config({{"timeline", "mark_cycles", "maybe"}}).ok());
}

TEST(Findings, ReadAsALineEachWithAdviceBelow) {
  EXPECT_EQ(shown({{Health::well, "cpu", "8 cores", ""}, {Health::problem, "network", "none", "do this"}}),
            "ok    cpu: 8 cores\nBAD   network: none\n      -> do this\n");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(100), "100 bytes");
}

TEST(Findings, TheSecretOfAJobIsNotShown) {
  const std::string report = shown(look_at_knobs({"HALAY_JOB_KEY=abc123", "HALAY_RANK=0"}));
  EXPECT_EQ(report.find("abc123"), std::string::npos);
  EXPECT_NE(report.find("HALAY_RANK=0"), std::string::npos);
}

TEST(PythonPackages, AreReadFromTheInterpretersAnswer) {
  const PythonPackages found =
      parse_python_packages("interpreter /a b/python3\nversion 3.11.2\ntorch 2.13.0+cpu\nnonsense\n");
  EXPECT_EQ(found.interpreter, "/a b/python3");
  EXPECT_EQ(found.version, "3.11.2");
  EXPECT_TRUE(found.has("torch"));
  EXPECT_FALSE(found.has("nonsense"));
}

}  // namespace
}  // namespace halay::program
