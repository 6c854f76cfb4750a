// StoreTable: the keys and values of one store, within limits. Thread: one at a time.   Owns: keys and values.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rendezvous/store_protocol.h"

namespace halay::rendezvous {

class StoreTable {
 public:
  // Replaces an older value. true: the key is new. no_memory: the store is full; nothing has changed.
  Result<bool> put(std::string key, std::vector<std::byte> value);
  // Those whose key begins with `prefix`, in order of keys.
  std::vector<StorePair> with_prefix(std::string_view prefix) const;
  size_t count_with_prefix(std::string_view prefix) const;
  const std::vector<std::byte>* find(std::string_view key) const;  // null: not there

 private:
  std::map<std::string, std::vector<std::byte>, std::less<>> values_;
  size_t bytes_ = 0;
};

}  // namespace halay::rendezvous
