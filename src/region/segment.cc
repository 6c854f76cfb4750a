#include "region/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/text.h"

namespace halay::region {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string reason() { return std::strerror(errno); }

Result<UniqueFd> open_dev_shm() {
  UniqueFd fd(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) return Status::no_memory(text("no shared memory: memfd is refused, and /dev/shm: ", reason()));
  return fd;
}

Result<UniqueFd> open_backing(const std::string& name, Backing backing) {
  if (backing == Backing::dev_shm) return open_dev_shm();
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd) return fd;
  if (errno == ENOSYS || errno == EPERM || errno == EACCES) return open_dev_shm();
  return Status::no_memory(text("shared memory: memfd_create: ", reason()));
}

// What the kernel could give without killing anybody; all there is where it does not say.
size_t available_bytes() {
  const UniqueFd file(::open("/proc/meminfo", O_RDONLY | O_CLOEXEC));
  char content[4096];
  const ssize_t got = file ? ::read(file.get(), content, sizeof content) : -1;
  const std::string_view lines(content, got > 0 ? static_cast<size_t>(got) : 0);
  constexpr std::string_view kKey = "MemAvailable:";
  const size_t at = lines.find(kKey);
  if (at == std::string_view::npos) return SIZE_MAX;
  size_t kib = 0, digit = lines.find_first_not_of(' ', at + kKey.size());
  for (; digit < lines.size() && lines[digit] >= '0' && lines[digit] <= '9'; ++digit) {
    kib = kib * 10 + static_cast<size_t>(lines[digit] - '0');
  }
  return kib * 1024;
}

// A memfd has no limit of its own: reserving more than there is would not fail, the kernel would kill processes for it.
Status check_fits(size_t bytes) {
  const size_t available = available_bytes();
  if (bytes <= available) return {};
  return Status::no_memory(text("shared memory of ", bytes, " bytes: this machine has ", available, " bytes left"));
}

}  // namespace

Segment::Segment(Segment&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      fd_(std::move(other.fd_)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

Segment::~Segment() {
  if (data_) ::munmap(data_, size_bytes_);
}

Result<Segment> Segment::create(std::string_view name, size_t bytes, Backing backing) {
  HALAY_ASSERT(bytes > 0);
  HALAY_RETURN_IF_ERROR(check_fits(bytes));
  HALAY_TRY(UniqueFd fd, open_backing(std::string(name), backing));
  const auto length = static_cast<off_t>(bytes);
  if (::ftruncate(fd.get(), length) != 0) {
    return Status::no_memory(text("shared memory of ", bytes, " bytes: ftruncate: ", reason()));
  }
  if (const int error = ::posix_fallocate(fd.get(), 0, length); error != 0) {
    return Status::no_memory(text("shared memory of ", bytes, " bytes: ", std::strerror(error)));
  }
  if (backing == Backing::automatic) ::fcntl(fd.get(), F_ADD_SEALS, kSeals);  // /dev/shm files cannot be sealed
  return map_whole(std::move(fd), bytes);
}

Result<Segment> Segment::map(UniqueFd fd, size_t expected_bytes) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return Status::internal(text("shared memory: fstat: ", reason()));
  if (status.st_size < 0 || static_cast<size_t>(status.st_size) != expected_bytes) {
    return Status::internal(text("shared memory: came with ", static_cast<int64_t>(status.st_size),
                                 " bytes, announced were ", expected_bytes));
  }
  return map_whole(std::move(fd), expected_bytes);
}

Result<Segment> Segment::map_whole(UniqueFd fd, size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (at == MAP_FAILED) return Status::no_memory(text("shared memory of ", bytes, " bytes: mmap: ", reason()));
  ::madvise(at, bytes, MADV_DONTFORK);  // a forked child must not speak in its parent's name
  Segment segment;
  segment.data_ = static_cast<std::byte*>(at);
  segment.size_bytes_ = bytes;
  segment.fd_ = std::move(fd);
  return segment;
}

Status Segment::make_private() {
  if (!data_) return {};
  void* copy = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return Status::no_memory(text("private copy of shared memory: mmap: ", reason()));
  std::memcpy(copy, data_, size_bytes_);
  if (::mremap(copy, size_bytes_, size_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED) {
    const std::string why = reason();
    ::munmap(copy, size_bytes_);
    return Status::no_memory(text("private copy of shared memory: mremap: ", why));
  }
  fd_.reset();
  return {};
}

}  // namespace halay::region
