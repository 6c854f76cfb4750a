#include "trace/trace_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/text.h"

namespace halay::trace {
namespace {

UniqueFd open_to_write(const std::string& path, int flags) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666));
}

// Where a symbolic link leads: names are exchanged there, and the link stays.
std::string resolved(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string out = real;
  std::free(real);
  return out;
}

}  // namespace

Status TraceFile::failure(int reason) const {
  return Status::invalid_argument(text("timeline ", path_, ": ", std::generic_category().message(reason)));
}

Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::string& path, std::string_view objects,
                                                     bool may_exchange) {
  if (path.empty()) return Status::invalid_argument("timeline: the path is empty");
  std::unique_ptr<TraceFile> file(new TraceFile(resolved(path)));
  struct stat info{};
  if (::stat(file->path_.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return file->failure(EISDIR);
    if (!S_ISREG(info.st_mode)) return Status::invalid_argument(text("timeline ", path, ": not a regular file"));
    // A file that may not be written stays, also where its folder would let us replace it.
    if (!open_to_write(file->path_, 0)) return file->failure(errno);
  }
  HALAY_RETURN_IF_ERROR(file->open_pair(objects, may_exchange));
  return file;
}

Status TraceFile::open_pair(std::string_view objects, bool may_exchange) {
  // The first text goes through the hidden name too, so that an old trace is replaced at once.
  visible_.fd = open_to_write(part_, O_CREAT | O_TRUNC);
  if (!visible_.fd) return open_in_place(objects);
  Status written = write(visible_, "[\n", objects);
  if (!written.ok() || ::rename(part_.c_str(), path_.c_str()) != 0) {
    const int reason = errno;
    ::unlink(part_.c_str());
    return written.ok() ? failure(reason) : written;
  }
  if (!may_exchange) return {};
  hidden_.fd = open_to_write(part_, O_CREAT | O_TRUNC);
  if (!hidden_.fd) return {};
  if (write(hidden_, "[\n", objects).ok() && exchange()) return {};
  hidden_ = {};
  ::unlink(part_.c_str());
  return {};
}

// A file that may be written in a folder that may not.
Status TraceFile::open_in_place(std::string_view objects) {
  const int reason = errno;
  visible_.fd = open_to_write(path_, O_TRUNC);
  if (!visible_.fd) return failure(reason);
  return write(visible_, "[\n", objects);
}

TraceFile::~TraceFile() {
  if (hidden_.fd) ::unlink(part_.c_str());
}

bool TraceFile::exchange() {
  // By its number: old C libraries do not have the function.
  if (::syscall(SYS_renameat2, AT_FDCWD, part_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) return false;
  std::swap(visible_, hidden_);
  return true;
}

Status TraceFile::write(Side& side, std::string_view opening, std::string_view objects) {
  constexpr std::string_view kSeparator = ",\n";
  HALAY_ASSERT(objects.ends_with(kSeparator));
  objects.remove_suffix(kSeparator.size());
  std::string bytes;
  bytes.reserve(opening.size() + objects.size() + kClosing.size());
  (bytes += opening) += objects;
  bytes += kClosing;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n =
        ::pwrite(side.fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(side.end + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failure(n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  side.end += bytes.size() - kClosing.size();
  return {};
}

Status TraceFile::append(std::string_view objects) {
  if (objects.empty()) return {};
  if (!hidden_.fd) {
    const size_t end = visible_.end;
    Status written = write(visible_, ",\n", objects);
    if (written.ok()) return {};
    // Back to what was whole.
    if (::ftruncate(visible_.fd.get(), static_cast<off_t>(end)) == 0) {
      [[maybe_unused]] const ssize_t n =
          ::pwrite(visible_.fd.get(), kClosing.data(), kClosing.size(), static_cast<off_t>(end));
    }
    return written;
  }
  backlog_ += objects;
  HALAY_RETURN_IF_ERROR(write(hidden_, ",\n", backlog_));
  if (exchange()) {
    backlog_ = objects;
    return {};
  }
  // Somebody took a name away: what we have just written becomes the file, and there is no second one any more.
  if (::rename(part_.c_str(), path_.c_str()) != 0) return failure(errno);
  visible_ = std::move(hidden_);
  hidden_ = {};
  return {};
}

}  // namespace halay::trace
