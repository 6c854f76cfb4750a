// A file that holds a whole JSON array at every moment, for whoever reads it meanwhile and after a kill at any
// instruction.
//
// Two files take turns: text goes to the hidden one (`path`.part), which then changes names with the visible one in one
// system call; the next text goes, with the one before, to the file that is hidden now. Where the file system cannot
// exchange names, one file is extended in place, the closing bracket overwritten: then a reader or a kill in that very
// moment finds it open. Thread: one at a time.   Owns: both files' descriptors, and the name `path`.part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::trace {

class TraceFile {
 public:
  // `objects`: at least one, each followed by ",\n". invalid_argument with path and reason.
  static Result<std::unique_ptr<TraceFile>> create(const std::string& path, std::string_view objects,
                                                   bool may_exchange = true);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // The objects are in the visible file when it returns. After a failure (a full disk) the file keeps what it had.
  Status append(std::string_view objects);
  // Of the visible file.
  size_t size_bytes() const { return visible_.end + kClosing.size(); }
  bool exchanges() const { return static_cast<bool>(hidden_.fd); }

 private:
  static constexpr std::string_view kClosing = "\n]\n";
  struct Side {
    UniqueFd fd;
    size_t end = 0;  // after the last object
  };
  explicit TraceFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {}
  Status open_pair(std::string_view objects, bool may_exchange);
  Status open_in_place(std::string_view objects);
  Status write(Side& side, std::string_view opening, std::string_view objects);
  bool exchange();
  // `reason` is an errno.
  Status failure(int reason) const;

  const std::string path_;
  const std::string part_;
  Side visible_;
  Side hidden_;          // no descriptor: in place
  std::string backlog_;  // what the visible file has and the hidden one lacks
};

}  // namespace halay::trace
