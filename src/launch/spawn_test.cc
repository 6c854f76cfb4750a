#include "launch/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/clock.h"
#include "launch/descendants.h"
#include "launch/rank_output.h"
#include "net/connect.h"

namespace halay::launch {
namespace {

std::string read_all_of(int fd) {
  std::string out;
  char buffer[4096];
  while (net::wait_readable(fd, system_clock().now().plus_ms(20'000))) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) break;
    out.append(buffer, static_cast<size_t>(count));
  }
  return out;
}

struct Folder {
  Folder() {
    char name[] = "/tmp/halay-spawn-test-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST(FindProgram, LooksOnPathInOrder) {
  Folder folder;
  for (const char* sub : {"/a", "/b"}) {
    std::filesystem::create_directory(folder.path + sub);
    std::ofstream(folder.path + sub + "/tool") << "#!/bin/sh\n";
    ::chmod((folder.path + sub + "/tool").c_str(), 0755);
  }
  int code = 0;
  const std::vector<std::string> environment{"PATH=/nowhere:" + folder.path + "/b:" + folder.path + "/a"};
  EXPECT_EQ(find_program("tool", environment, &code).value(), folder.path + "/b/tool");
  const auto missing = find_program("no-such-tool", environment, &code);
  EXPECT_FALSE(missing.ok());
  EXPECT_EQ(code, 127);
}

TEST(FindProgram, TellsNotThereFromCannotBeRun) {
  Folder folder;
  std::ofstream(folder.path + "/train.py") << "print(1)\n";
  int code = 0;
  const auto script = find_program(folder.path + "/train.py", {}, &code);
  ASSERT_FALSE(script.ok());
  EXPECT_EQ(code, 126);
  EXPECT_NE(script.status().text().find("python3 " + folder.path + "/train.py"), std::string::npos);
  EXPECT_FALSE(find_program(folder.path, {}, &code).ok());
  EXPECT_EQ(code, 126);
  EXPECT_FALSE(find_program(folder.path + "/nothing", {}, &code).ok());
  EXPECT_EQ(code, 127);
  EXPECT_FALSE(find_program("", {}, &code).ok());
}

TEST(Spawn, GivesASessionOfItsOwnAndBothStreams) {
  const auto worker =
      spawn("/bin/sh", {"sh", "-c", "echo out $A; echo err >&2; exit 3"}, {"A=b", "PATH=/bin:/usr/bin"});
  ASSERT_TRUE(worker.ok()) << worker.status().text();
  const pid_t pid = worker.value().pid;
  EXPECT_EQ(::getsid(pid), pid);
  EXPECT_EQ(::getpgid(pid), pid);
  EXPECT_TRUE(read_all_of(worker.value().output.get()).starts_with("out b\n"));
  EXPECT_EQ(read_all_of(worker.value().error.get()), "err\n");
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(Spawn, AProgramThatCannotBeRunIsAStatusNotAWorker) {
  Folder folder;
  std::ofstream(folder.path + "/x") << "no first line\n";
  ::chmod((folder.path + "/x").c_str(), 0755);
  const auto worker = spawn(folder.path + "/x", {"x"}, {});
  ASSERT_FALSE(worker.ok());
  EXPECT_NE(worker.status().text().find("Exec format error"), std::string::npos) << worker.status().text();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(Descendants, AreAllFoundAndEndedHoweverTheyHide) {
  adopt_orphans();
  const auto worker = spawn(
      "/bin/sh", {"sh", "-c", "setsid sleep 300 & (sleep 300 &) ; trap '' TERM; echo ready; while :; do sleep 1; done"},
      {"PATH=/bin:/usr/bin"});
  ASSERT_TRUE(worker.ok());
  char buffer[16];
  ASSERT_TRUE(net::wait_readable(worker.value().output.get(), system_clock().now().plus_ms(20'000)));
  ASSERT_GT(::read(worker.value().output.get(), buffer, sizeof buffer), 0);
  EXPECT_GE(descendants().size(), 3u);
  end_descendants(50);
  EXPECT_TRUE(descendants().empty());
}

TEST(RankFolder, IsPaddedToTheLargestRank) {
  EXPECT_EQ(rank_folder(0, 1), "rank.0");
  EXPECT_EQ(rank_folder(9, 10), "rank.9");
  EXPECT_EQ(rank_folder(9, 11), "rank.09");
  EXPECT_EQ(rank_folder(100, 101), "rank.100");
}

TEST(Sink, KeepsWhatASlowReaderDoesNotTakeAndLosesNothing) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  Sink sink(writer.get());
  std::string pushed;
  for (int i = 0; !sink.full(); ++i) {
    const std::string line = std::string(60'000, static_cast<char>('a' + i % 26)) + "\n";
    sink.push(line);
    pushed += line;
  }
  EXPECT_TRUE(sink.waits_for_reader());
  sink.drain(Time{});  // nobody reads: it does not wait either
  std::string got;
  std::vector<char> buffer(1 << 16);
  while (got.size() < pushed.size()) {
    const ssize_t count = ::read(reader.get(), buffer.data(), buffer.size());
    ASSERT_GT(count, 0);
    got.append(buffer.data(), static_cast<size_t>(count));
    sink.flush();
  }
  EXPECT_EQ(got, pushed);
  EXPECT_FALSE(sink.waits_for_reader());
}

TEST(Sink, AReaderThatHasGoneIsNoFailure) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]);
  {
    const UniqueFd reader(ends[0]);
  }
  Sink sink(writer.get());
  for (int i = 0; i < 100; ++i) sink.push(std::string(100'000, 'x'));
  EXPECT_FALSE(sink.waits_for_reader());
}

}  // namespace
}  // namespace halay::launch
