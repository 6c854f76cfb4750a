// Starting from what the launcher left in the environment: the addresses travel through its store.
#include "base/text.h"
#include "engine/engine.h"
#include "rendezvous/gather.h"
#include "rendezvous/store_client.h"

namespace halay::engine {

Status Engine::start_from_environment() {
  const bool launched = config_.rank >= 0 || config_.size >= 0 || !config_.store.empty();
  HALAY_TRY(const std::span<const std::byte> own, address());
  if (!launched) {
    const std::vector<std::vector<std::byte>> alone{{own.begin(), own.end()}};
    return start(0, alone);
  }
  if (config_.rank < 0 || config_.size < 1 || config_.rank >= config_.size) {
    return Status::invalid_argument(text("HALAY_RANK=", config_.rank, " and HALAY_SIZE=", config_.size,
                                         ": the launcher sets both, rank from 0 to size - 1"));
  }
  if (config_.store.empty()) {
    if (config_.size == 1) {
      const std::vector<std::vector<std::byte>> alone{{own.begin(), own.end()}};
      return start(0, alone);
    }
    return Status::invalid_argument(text("HALAY_SIZE=", config_.size,
                                         " but no HALAY_STORE: the ranks have no place to meet; "
                                         "start the job with `halay run`"));
  }
  const Time deadline = clock_.now().plus_ms(static_cast<int64_t>(config_.start_timeout_s * 1000));
  HALAY_TRY(rendezvous::StoreClient store, rendezvous::StoreClient::connect(config_.store, config_.job_key, deadline));
  rendezvous::Member self;
  self.rank = static_cast<int32_t>(config_.rank);
  self.size = static_cast<int32_t>(config_.size);
  self.host = config_.hostname;
  self.address = own;
  self.epoch = epoch_++;
  HALAY_TRY(const auto addresses, rendezvous::gather_addresses(store, self, deadline));
  return start(self.rank, addresses);
}

}  // namespace halay::engine
