// Everybody to everybody, straight into the output: shared by direct allgather and pairwise alltoall. Private to this
// room. Thread: any (no state).
#pragma once

#include <span>

#include "collective/builder.h"

namespace halay::collective {

// Sends to_peer[m] (of input) to each other m and receives from_peer[m] (of output), in chunks. All receives are posted
// at once, since each has its place; sends start with the next member, so that not all begin with the same one, with a
// bounded number in flight.
void exchange_all(Builder& builder, int me, std::span<const Part> to_peer, std::span<const Part> from_peer,
                  size_t chunk);

}  // namespace halay::collective
