#include "collective/exchange.h"

namespace halay::collective {
namespace {
constexpr size_t kInFlight = 16;
}

void exchange_all(Builder& builder, int me, std::span<const Part> to_peer, std::span<const Part> from_peer,
                  size_t chunk) {
  const int members = static_cast<int>(to_peer.size());
  std::vector<Post> received, sent;
  for (int distance = 1; distance < members; ++distance) {
    const int peer = before(me, distance, members);
    const Part& all = from_peer[static_cast<size_t>(peer)];
    for (size_t c = 0; c < chunks_in(all.count, chunk); ++c) {
      received.push_back(builder.recv(peer, output(chunk_of(all, c, chunk))));
    }
  }
  for (int distance = 1; distance < members; ++distance) {
    const int peer = after(me, distance, members);
    const Part& all = to_peer[static_cast<size_t>(peer)];
    for (size_t c = 0; c < chunks_in(all.count, chunk); ++c) {
      if (sent.size() >= kInFlight) builder.wait(sent[sent.size() - kInFlight]);
      sent.push_back(builder.send(peer, input(chunk_of(all, c, chunk))));
    }
  }
  builder.wait_all(received);
  builder.wait_all(sent);
}

}  // namespace halay::collective
