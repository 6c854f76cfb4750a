// StoreClient: a connection to the launcher's store. Every call has a deadline and says where it failed.
// Thread: one at a time.   Owns: the connection.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/frame.h"
#include "net/stream.h"
#include "rendezvous/store_protocol.h"

namespace halay::rendezvous {

class StoreClient {
 public:
  // Connects and proves the key; both sides prove theirs.
  static Result<StoreClient> connect(std::string_view address, std::string_view job_key, Time deadline);

  Status put(std::string_view key, std::span<const std::byte> value, Time deadline);
  // Waits until the key is there. timeout names the key.
  Result<std::vector<std::byte>> get(std::string_view key, Time deadline);
  // Waits until `count` keys begin with `prefix`; at the deadline gives those that do. In order of keys.
  Result<std::vector<StorePair>> collect(std::string_view prefix, uint32_t count, Time deadline);

 private:
  explicit StoreClient(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}
  Status introduce(std::string_view job_key, Time deadline);
  Result<StoreReply> ask(const StoreRequest& request, std::string_view stage, Time deadline);

  std::unique_ptr<net::Stream> stream_;
  net::FrameReader reader_{kReplyBytesMost};
};

}  // namespace halay::rendezvous
