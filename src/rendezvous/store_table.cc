#include "rendezvous/store_table.h"

#include "base/text.h"

namespace halay::rendezvous {

Result<bool> StoreTable::put(std::string key, std::vector<std::byte> value) {
  const auto at = values_.find(key);
  const bool is_new = at == values_.end();
  const size_t before = is_new ? 0 : key.size() + at->second.size();
  const size_t after = bytes_ - before + key.size() + value.size();
  if (after > kStoreBytesMost) {
    return Status::no_memory(text("the store is full: ", bytes_, " of ", kStoreBytesMost, " bytes, '", key, "' needs ",
                                  key.size() + value.size()));
  }
  bytes_ = after;
  values_.insert_or_assign(std::move(key), std::move(value));
  return is_new;
}

std::vector<StorePair> StoreTable::with_prefix(std::string_view prefix) const {
  std::vector<StorePair> pairs;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
    pairs.push_back({at->first, at->second});
  }
  return pairs;
}

size_t StoreTable::count_with_prefix(std::string_view prefix) const {
  size_t count = 0;
  for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) ++count;
  return count;
}

const std::vector<std::byte>* StoreTable::find(std::string_view key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

}  // namespace halay::rendezvous
