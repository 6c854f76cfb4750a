// The Unix sockets between two processes of one machine: they carry descriptors, and their end is the end of the
// process. Messages keep their borders (SOCK_SEQPACKET); names are abstract, so nothing stays in the file system.
// Thread: any (no state).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"

namespace halay::region {

inline constexpr size_t kMostDescriptors = 4;

// Listens at a fresh abstract name, which is given back without its leading zero byte.
struct LocalListener {
  UniqueFd socket;
  std::string name;
};
Result<LocalListener> listen_local();
// Sockets are non-blocking. Empty: nobody waits at the moment.
Result<UniqueFd> connect_local(std::string_view name);
UniqueFd accept_local(int listener);
// The process at the other end as the kernel knows it; 0 where it cannot be seen from here.
int32_t peer_process(int socket);

enum class Passing : uint8_t { done, would_block, ended };

struct LocalMessage {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> descriptors;
};
// At most kMostDescriptors; the descriptors are lent.
Passing send_local(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors);
// `ended` also for what is larger than `most_bytes`.
Passing receive_local(int socket, size_t most_bytes, LocalMessage& into);

// Readable once the process has ended, whoever else still holds its sockets (a forked child does). Empty: not to be
// had.
UniqueFd watch_process(int32_t pid);

}  // namespace halay::region
