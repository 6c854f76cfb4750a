// How the ranks of one world learn each other's addresses: everybody puts its own into the store and waits for all.
// Thread: any (no state).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/store_client.h"

namespace halay::rendezvous {

struct Member {
  int32_t rank = 0, size = 1;
  std::string host;                    // for messages
  std::span<const std::byte> address;  // what transport's Door gave
  int64_t epoch = 0;                   // worlds of one job, one after another
};

// addresses[r] of all ranks. timeout: "start: have rank 0 from host X, missing rank 1 (of 2, after 30 s)".
// mismatch: two processes claim one rank, or the ranks disagree about the size.
Result<std::vector<std::vector<std::byte>>> gather_addresses(StoreClient& store, const Member& self, Time deadline);

// "rank 1", "ranks 1-3 and 7": for messages. Sorts.
std::string rank_list(std::vector<int32_t> ranks);

}  // namespace halay::rendezvous
