#include "trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "base/text.h"
#include "trace/folder_for_test.h"
#include "trace/json_for_test.h"

namespace halay::trace {
namespace {

std::string object(int number) { return text(R"({"number":)", number, "},\n"); }

size_t objects_in(const std::string& path) {
  const auto value = json::parse(json::contents(path));
  return value.has_value() ? value->items.size() : 0;
}

std::string why_not(const std::string& path) { return TraceFile::create(path, object(0)).status().text(); }

class TraceFileModes : public testing::TestWithParam<bool> {};

TEST_P(TraceFileModes, HoldsEveryObjectAfterEveryAppend) {
  const Folder folder;
  const std::string path = folder / "trace.json";
  {
    auto file = TraceFile::create(path, object(0), GetParam()).value();
    EXPECT_EQ(file->exchanges(), GetParam());
    EXPECT_EQ(objects_in(path), 1u);
    for (int i = 1; i < 50; ++i) {
      ASSERT_TRUE(file->append(object(2 * i - 1) + object(2 * i)).ok());
      ASSERT_EQ(objects_in(path), static_cast<size_t>(2 * i + 1));
      ASSERT_EQ(file->size_bytes(), json::contents(path).size());
    }
    ASSERT_TRUE(file->append("").ok());
  }
  const auto value = json::parse(json::contents(path));
  ASSERT_TRUE(value.has_value());
  for (size_t i = 0; i < value->items.size(); ++i) EXPECT_EQ(value->items[i]["number"].number, static_cast<double>(i));
  EXPECT_EQ(folder.file_count(), 1u);  // no .part is left
}

TEST_P(TraceFileModes, KeepsWhatItHadWhenTheDiskIsFull) {
  const Folder folder;
  const std::string path = folder / "trace.json";
  // In a child, whose files may not grow beyond 4096 bytes.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = TraceFile::create(path, object(0), GetParam());
    Status status = file.ok() ? Status() : file.status();
    int appended = 0;
    while (status.ok() && appended < 1000) status = file.value()->append(object(++appended));
    const bool said_so =
        status.code() == Code::invalid_argument && status.text().find("File too large") != std::string::npos;
    ::_exit(said_so && appended > 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_GT(objects_in(path), 100u);
}

INSTANTIATE_TEST_SUITE_P(Both, TraceFileModes, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Exchanging" : "InPlace"; });

TEST(TraceFile, IsWholeForAReaderAtEveryMoment) {
  const Folder folder;
  const std::string path = folder / "trace.json";
  auto file = TraceFile::create(path, object(0)).value();
  constexpr int kAppends = 300;
  std::atomic<int> begun{0};  // appends that have begun
  std::atomic<int> looks{0};
  std::thread writer([&] {
    for (int i = 1; i <= kAppends; ++i) {
      const int look = looks;
      begun = i;
      if (!file->append(object(i)).ok()) ADD_FAILURE() << "append " << i;
      while (looks == look) std::this_thread::yield();
    }
    begun = kAppends + 1;
  });
  size_t before = 0, reads = 0;
  while (begun <= kAppends) {
    // The file that is opened during one append is written next by the append after it.
    const int at_open = begun;
    const std::string text = json::contents(path);
    const bool overtaken = begun != at_open;
    ++looks;
    if (overtaken) continue;
    const auto value = json::parse(text);
    EXPECT_TRUE(value.has_value()) << text.substr(text.size() > 100 ? text.size() - 100 : 0);
    if (!value.has_value()) continue;
    EXPECT_GE(value->items.size(), before);
    before = value->items.size();
    ++reads;
  }
  writer.join();
  EXPECT_GT(reads, 0u);
  EXPECT_EQ(objects_in(path), static_cast<size_t>(kAppends + 1));
}

TEST(TraceFile, ReplacesAnOldFileAndFollowsALink) {
  const Folder folder;
  const std::string path = folder / "old.json", link = folder / "link.json";
  {
    auto file = TraceFile::create(path, object(1) + object(2) + object(3)).value();
  }
  ASSERT_EQ(::symlink("old.json", link.c_str()), 0);
  {
    auto file = TraceFile::create(link, object(1)).value();
    ASSERT_TRUE(file->append(object(2)).ok());
  }
  EXPECT_EQ(objects_in(path), 2u);
  struct stat info{};
  ASSERT_EQ(::lstat(link.c_str(), &info), 0);
  EXPECT_TRUE(S_ISLNK(info.st_mode));
}

TEST(TraceFile, GoesOnWhenItsFilesAreTakenAway) {
  for (const char* const taken : {"trace.json", "trace.json.part"}) {
    const Folder folder;
    const std::string path = folder / "trace.json";
    auto file = TraceFile::create(path, object(0)).value();
    ASSERT_TRUE(file->append(object(1)).ok());
    std::filesystem::remove(folder / taken);
    // What is visible goes on, or is there again; only when the hidden one was taken may a text be lost with it.
    static_cast<void>(file->append(object(2)));
    static_cast<void>(file->append(object(3)));
    EXPECT_GE(objects_in(path), 2u) << taken;
  }
}

TEST(TraceFile, R54NamesThePathAndTheReasonWhenItCannotBeWritten) {
  const Folder folder;
  std::filesystem::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  {
    auto file = TraceFile::create(folder / "file", object(0)).value();
  }
  EXPECT_EQ(why_not(""), "timeline: the path is empty");
  EXPECT_EQ(why_not(folder / "folder"), "timeline " + folder / "folder" + ": Is a directory");
  EXPECT_EQ(why_not(folder / "none/x.json"), "timeline " + folder / "none/x.json" + ": No such file or directory");
  EXPECT_EQ(why_not(folder / "file/x.json"), "timeline " + folder / "file/x.json" + ": Not a directory");
  EXPECT_EQ(why_not(folder / "pipe"), "timeline " + folder / "pipe" + ": not a regular file");
  EXPECT_EQ(why_not(folder / std::string(300, 'x')),
            "timeline " + folder / std::string(300, 'x') + ": File name too long");
}

}  // namespace
}  // namespace halay::trace
