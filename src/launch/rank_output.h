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
  // `name` is "stdout" or "stderr".
  RankOutput(int32_t rank, std::string_view name, UniqueFd pipe, Sink& sink, bool timestamps);
  // Writes a copy to folder/rank.<rank, padded to the largest>/<name>. The error names the path.
  Status copy_to(const std::string& folder, int32_t rank, int32_t size, std::string_view name);

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

}  // namespace halay::launch
