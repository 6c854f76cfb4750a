// A folder for the files of one test, gone with it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace halay::trace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "halay_trace_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  // How many files lie in it.
  size_t file_count() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace halay::trace
