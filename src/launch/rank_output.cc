#include "launch/rank_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/text.h"
#include "net/connect.h"

namespace halay::launch {
namespace {

Status cannot_make(const std::string& path) {
  return Status::invalid_argument(text("cannot write '", path, "': ", std::strerror(errno)));
}

Status make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) return cannot_make(part);
    if (slash == std::string::npos) return {};
  }
}

}  // namespace

std::string rank_folder(int32_t rank, int32_t size) {
  std::string digits = text(rank);
  const size_t width = text(size > 1 ? size - 1 : 0).size();
  return "rank." + std::string(width - std::min(width, digits.size()), '0') + digits;
}

Result<UniqueFd> open_copy(const std::string& folder, int32_t rank, int32_t size, std::string_view name) {
  const std::string place = text(folder, "/", rank_folder(rank, size));
  HALAY_RETURN_IF_ERROR(make_folders(place));
  const std::string path = text(place, "/", name);
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return cannot_make(path);
  return file;
}

RankOutput::RankOutput(int32_t rank, std::string_view name, UniqueFd pipe, UniqueFd copy, Sink& sink, bool timestamps)
    : pipe_(std::move(pipe)),
      file_(std::move(copy)),
      sink_(sink),
      prefixer_(text("[", rank, "]<", name, ">:")),
      timestamps_(timestamps) {}

std::string RankOutput::stamp() const {
  if (!timestamps_) return {};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[64];
  std::strftime(buffer, sizeof buffer, "%a %b %e %H:%M:%S %Y", &parts);
  return buffer;
}

void RankOutput::save(std::string_view bytes) {
  while (file_ && !bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      sink_.push(text("halay run: a copy of the output ends here: ", std::strerror(errno), "\n"));
      file_.reset();
    }
  }
}

bool RankOutput::has_bytes() const { return pipe_ && net::wait_readable(pipe_.get(), Time{}); }

void RankOutput::close() {
  std::string line;
  prefixer_.finish(stamp(), line);
  sink_.push(line);
  pipe_.reset();
}

bool RankOutput::pump() {
  char buffer[64 * 1024];
  std::string lines;
  while (pipe_) {
    const ssize_t count = ::read(pipe_.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      sink_.push(std::exchange(lines, {}));
      close();
      break;
    }
    const std::string_view bytes(buffer, static_cast<size_t>(count));
    save(bytes);
    prefixer_.feed(bytes, stamp(), lines);
    if (lines.size() >= sizeof buffer) break;  // others want their turn
  }
  if (!lines.empty()) sink_.push(lines);
  return !ended();
}

}  // namespace halay::launch
