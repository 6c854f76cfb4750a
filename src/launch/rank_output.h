// RankOutput: one output stream of one rank, on its way to the launcher's own and, if asked for, as it is to a file.
// Thread: one at a time.   Owns: the pipe's reading end, the file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/unique_fd.h"
#include "launch/line_prefixer.h"
#include "launch/sink.h"

namespace halay::launch {

class RankOutput {
 public:
  // `name` is "stdout" or "stderr"; `copy` a file that gets the bytes as they are, or none.
  RankOutput(int32_t rank, std::string_view name, UniqueFd pipe, UniqueFd copy, Sink& sink, bool timestamps);

  // Moves what is there, in a bounded helping; false: the stream has ended.
  bool pump();
  // Is there something to pump, be it the end?
  bool has_bytes() const;
  // Whatever still comes does not count any more; an unfinished line is given an end.
  void close();
  int fd() const { return pipe_.get(); }
  bool ended() const { return !pipe_; }
  Sink& sink() const { return sink_; }

 private:
  void save(std::string_view bytes);
  std::string stamp() const;

  UniqueFd pipe_, file_;
  Sink& sink_;
  LinePrefixer prefixer_;
  const bool timestamps_;
};

// "rank.07" for rank 7 of 64.
std::string rank_folder(int32_t rank, int32_t size);
// Makes folder/rank.07/<name>, and the folders. The error names the path.
Result<UniqueFd> open_copy(const std::string& folder, int32_t rank, int32_t size, std::string_view name);

}  // namespace halay::launch
