#include "raw/fork_world.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace halay::bench {
namespace {

constexpr size_t kAddressBytes = 16 * 1024;

// One for each rank, in memory that all processes share.
struct Card {
  std::atomic<uint32_t> size_bytes;  // 0: not written yet
  std::byte address[kAddressBytes];
};

int run_rank(int32_t rank, int32_t size, const std::string& transport, Card* cards,
             const std::function<int(transport::Fabric&)>& body) {
  transport::FabricOptions options;
  options.transport = transport;
  options.key = "bench";
  options.build_id = "bench";
  auto door = transport::open_door(options);
  if (!door.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, door.status().text().c_str());
    return 3;
  }
  const std::span<const std::byte> address = door.value()->address();
  HALAY_ASSERT(address.size() <= kAddressBytes && !address.empty());
  std::copy(address.begin(), address.end(), cards[rank].address);
  cards[rank].size_bytes.store(static_cast<uint32_t>(address.size()), std::memory_order_release);
  std::vector<std::vector<std::byte>> addresses;
  for (int32_t peer = 0; peer < size; ++peer) {
    uint32_t size_bytes = 0;
    while ((size_bytes = cards[peer].size_bytes.load(std::memory_order_acquire)) == 0) sched_yield();
    addresses.emplace_back(cards[peer].address, cards[peer].address + size_bytes);
  }
  auto fabric = transport::connect(std::move(door).value(), rank, addresses, options);
  if (!fabric.ok()) {
    std::fprintf(stderr, "rank %d: %s\n", rank, fabric.status().text().c_str());
    return 3;
  }
  return body(*fabric.value());
}

}  // namespace

int run_forked(int32_t size, const std::string& transport, const std::function<int(transport::Fabric&)>& body) {
  const size_t map_bytes = sizeof(Card) * static_cast<size_t>(size);
  void* map = mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HALAY_ASSERT(map != MAP_FAILED);
  Card* cards = static_cast<Card*>(map);  // zeroes: nothing written
  std::vector<pid_t> children;
  for (int32_t rank = 1; rank < size; ++rank) {
    const pid_t child = fork();
    HALAY_ASSERT(child >= 0);
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(run_rank(rank, size, transport, cards, body));
    }
    children.push_back(child);
  }
  int worst = run_rank(0, size, transport, cards, body);
  for (const pid_t child : children) {
    int status = 0;
    HALAY_ASSERT(waitpid(child, &status, 0) == child);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  munmap(map, map_bytes);
  return worst;
}

}  // namespace halay::bench
