// Numbers tensor names, so that the hot path carries 4 bytes and no text.
// Thread: any.   Owns: the texts, for the life of the table.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/annotations.h"
#include "base/name_id.h"

namespace halay {

class NameTable {
 public:
  NameTable() = default;
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;

  // The number of `name`, a new one at its first use. Number 0 is the empty name.
  NameId intern(std::string_view name);
  // The text stays valid as long as the table. Asserts that `id` came from this table.
  std::string_view text(NameId id) const;
  size_t size() const;

 private:
  mutable Mutex mutex_;
  std::deque<std::string> texts_ HALAY_GUARDED_BY(mutex_){std::string()};
  std::unordered_map<std::string_view, uint32_t> ids_ HALAY_GUARDED_BY(mutex_){{std::string_view(), 0}};
};

}  // namespace halay
