#include "rendezvous/gather.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/text.h"

namespace halay::rendezvous {
namespace {

constexpr size_t kHostBytesMost = 256;

struct Entry {
  int32_t rank = -1, size = 0;
  std::string host;
  std::vector<std::byte> address;
};

std::vector<std::byte> encode_entry(const Member& self) {
  ByteWriter writer;
  writer.number(static_cast<uint32_t>(self.rank)).number(static_cast<uint32_t>(self.size));
  writer.block(bytes_of(std::string_view(self.host).substr(0, kHostBytesMost))).bytes(self.address);
  return writer.take();
}

Result<Entry> decode_entry(const StorePair& pair) {
  ByteReader reader(pair.value);
  Entry entry;
  entry.rank = static_cast<int32_t>(reader.number<uint32_t>());
  entry.size = static_cast<int32_t>(reader.number<uint32_t>());
  entry.host = text_of(reader.block(kHostBytesMost));
  if (reader.failed())
    return Status::mismatch(text("start: the entry '", pair.key, "' is from another version of halay"));
  entry.address.assign(reader.rest().begin(), reader.rest().end());
  return entry;
}

// "have ranks 0-2 from host a and rank 3 from host b, missing ranks 4 and 5"
std::string roll_call(const std::vector<Entry>& present, int32_t size) {
  std::map<std::string, std::vector<int32_t>> by_host;
  std::vector<int32_t> missing;
  for (int32_t rank = 0; rank < size; ++rank) missing.push_back(rank);
  for (const Entry& entry : present) {
    by_host[entry.host].push_back(entry.rank);
    std::erase(missing, entry.rank);
  }
  std::string have;
  for (const auto& [host, ranks] : by_host) {
    have += text(have.empty() ? "" : " and ", rank_list(ranks), " from host ", host);
  }
  return text("have ", have.empty() ? "nobody" : have, ", missing ", rank_list(missing));
}

}  // namespace

std::string rank_list(std::vector<int32_t> ranks) {
  if (ranks.empty()) return "no rank";
  std::ranges::sort(ranks);
  std::vector<std::string> runs;
  for (size_t from = 0; from < ranks.size();) {
    size_t to = from;
    while (to + 1 < ranks.size() && ranks[to + 1] <= ranks[to] + 1) ++to;
    if (to - from < 2) {
      runs.push_back(text(ranks[from]));
      ++from;
    } else {
      runs.push_back(text(ranks[from], "-", ranks[to]));
      from = to + 1;
    }
  }
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < runs.size(); ++i) {
    if (i > 0) out += i + 1 == runs.size() ? " and " : ", ";
    out += runs[i];
  }
  return out;
}

Result<std::vector<std::vector<std::byte>>> gather_addresses(StoreClient& store, const Member& self, Time deadline) {
  const Time begun = system_clock().now();
  const std::string prefix = text("world/", self.epoch, "/");
  const std::vector<std::byte> own = encode_entry(self);
  HALAY_RETURN_IF_ERROR(store.put(text(prefix, self.rank), own, deadline));
  HALAY_TRY(const std::vector<StorePair> pairs, store.collect(prefix, static_cast<uint32_t>(self.size), deadline));

  std::vector<Entry> present;
  for (const StorePair& pair : pairs) {
    HALAY_TRY(Entry entry, decode_entry(pair));
    if (entry.size != self.size || entry.rank < 0 || entry.rank >= self.size) {
      return Status::mismatch(text("start: rank ", self.rank, " was told a size of ", self.size, ", rank ", entry.rank,
                                   " on host ", entry.host, " a size of ", entry.size));
    }
    if (entry.rank == self.rank && pair.value != own) {
      return Status::mismatch(
          text("start: two processes claim rank ", self.rank, ": on host ", self.host, " and on host ", entry.host));
    }
    present.push_back(std::move(entry));
  }
  if (present.size() < static_cast<size_t>(self.size)) {
    const double waited = seconds_between(begun, system_clock().now());
    return Status::timeout(text("start: ", roll_call(present, self.size), " (of ", self.size, ", after ",
                                static_cast<double>(static_cast<int64_t>(waited * 10)) / 10.0, " s)"));
  }
  std::vector<std::vector<std::byte>> addresses(present.size());
  for (Entry& entry : present) addresses[static_cast<size_t>(entry.rank)] = std::move(entry.address);
  return addresses;
}

}  // namespace halay::rendezvous
