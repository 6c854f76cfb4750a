#include "base/name_table.h"

#include "base/check.h"

namespace halay {

NameId NameTable::intern(std::string_view name) {
  MutexLock lock(mutex_);
  if (const auto found = ids_.find(name); found != ids_.end()) return static_cast<NameId>(found->second);
  const auto id = static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(name), id);
  return static_cast<NameId>(id);
}

std::string_view NameTable::text(NameId id) const {
  MutexLock lock(mutex_);
  const auto index = static_cast<size_t>(id);
  HALAY_ASSERT(index < texts_.size());
  return texts_[index];
}

size_t NameTable::size() const {
  MutexLock lock(mutex_);
  return texts_.size();
}

}  // namespace halay
