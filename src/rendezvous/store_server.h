// StoreServer: the small key-value store by which the ranks of one job find each other. Lives in the launcher, on an
// abstract unix socket; takes only processes of the same user that prove the job's key. A client that speaks nonsense
// is dropped with one line and harms nobody.
// Thread: its own; start, address and end from any.   Owns: socket, thread, keys and values.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace halay::rendezvous {

class StoreServer {
 public:
  virtual ~StoreServer() = default;  // closes all connections and ends the thread
  // "unix:@halay-...": what clients are given in HALAY_STORE.
  virtual const std::string& address() const = 0;

  static Result<std::unique_ptr<StoreServer>> start(std::string job_key);
};

}  // namespace halay::rendezvous
