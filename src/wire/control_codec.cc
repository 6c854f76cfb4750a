#include "wire/control_codec.h"

#include <algorithm>

#include "wire/byte_reader.h"
#include "wire/byte_writer.h"

namespace halay::wire {
namespace {

enum MessageKind : uint8_t { kAnnouncement = 1, kList = 2 };
enum AnnouncementFlag : uint8_t { kUrgent = 1, kJoined = 2 };
// Of a request or a decision: what it has besides the fixed part.
enum TensorFlag : uint8_t {
  kActiveDivisor = 1,
  kScales = 2,
  kRoot = 4,
  kGroup = 8,
  kNumbers = 16,
  kAllTensorFlags = 31
};

constexpr uint64_t kMaxInt64 = INT64_MAX;

// What Request and Decision have in common; `numbers` are splits or rows.
template <typename Tensor>
void put_tensor(ByteWriter& writer, const Tensor& tensor, const std::vector<int64_t>& numbers, const NameTable& names) {
  uint8_t flags = 0;
  if (tensor.divisor == Divisor::active) flags |= kActiveDivisor;
  if (tensor.prescale != 1.0 || tensor.postscale != 1.0) flags |= kScales;
  if (tensor.root != 0) flags |= kRoot;
  if (tensor.group_size != 0) flags |= kGroup;
  if (!numbers.empty()) flags |= kNumbers;
  writer.text(names.text(tensor.name));
  writer.u8(static_cast<uint8_t>(tensor.kind));
  writer.u8(static_cast<uint8_t>(tensor.dtype));
  writer.u8(static_cast<uint8_t>(tensor.reduce_op));
  writer.u8(static_cast<uint8_t>(tensor.device));
  writer.u8(flags);
  writer.varint(tensor.shape.dim_count());
  for (const int64_t dim : tensor.shape.dims()) writer.varint(static_cast<uint64_t>(dim));
  if (flags & kScales) {
    writer.f64(tensor.prescale);
    writer.f64(tensor.postscale);
  }
  if (flags & kRoot) writer.varint(static_cast<uint64_t>(tensor.root));
  if (flags & kGroup) {
    writer.text(names.text(tensor.group));
    writer.varint(tensor.group_size);
  }
  if (flags & kNumbers) {
    writer.varint(numbers.size());
    for (const int64_t number : numbers) writer.varint(static_cast<uint64_t>(number));
  }
}

// Refused unless its bytes can be counted.
Shape read_shape(ByteReader& reader, DType dtype) {
  const uint64_t dim_count = reader.varint(Shape::kMaxDims);
  std::array<int64_t, Shape::kMaxDims> dims{};
  int64_t bytes = static_cast<int64_t>(bytes_of(dtype));
  for (uint64_t i = 0; i < dim_count && !reader.failed(); ++i) {
    dims[i] = static_cast<int64_t>(reader.varint(kMaxInt64));
    // Zero dims do not excuse the others: rows change, and the product of the rest must hold.
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dims[i], 1), &bytes)) reader.fail("a shape is too large");
  }
  return Shape(std::span<const int64_t>(dims.data(), dim_count));
}

template <typename Tensor>
void read_tensor(ByteReader& reader, int set_size, Tensor& tensor, std::vector<int64_t>& numbers, NameTable& names) {
  const std::string_view name = reader.text();
  const auto kind = op_kind_from_number(reader.u8());
  const auto dtype = dtype_from_number(reader.u8());
  const auto reduce_op = reduce_op_from_number(reader.u8());
  const uint8_t device = reader.u8();
  const uint8_t flags = reader.u8();
  if (!kind || *kind == OpKind::join) return reader.fail("unknown kind of operation");
  if (!dtype) return reader.fail("unknown dtype");
  if (!reduce_op) return reader.fail("unknown reduce op");
  if (device > static_cast<uint8_t>(DeviceType::cuda)) return reader.fail("unknown device");
  if (flags & ~kAllTensorFlags) return reader.fail("unknown flag");
  tensor.kind = *kind;
  tensor.dtype = *dtype;
  tensor.reduce_op = *reduce_op;
  tensor.device = static_cast<DeviceType>(device);
  tensor.divisor = flags & kActiveDivisor ? Divisor::active : Divisor::world;
  tensor.shape = read_shape(reader, *dtype);
  if (flags & kScales) {
    tensor.prescale = reader.f64();
    tensor.postscale = reader.f64();
  }
  if (flags & kRoot) tensor.root = static_cast<int32_t>(reader.varint(static_cast<uint64_t>(set_size) - 1));
  if (flags & kGroup) {
    const std::string_view group = reader.text();
    tensor.group_size = static_cast<uint32_t>(reader.varint(UINT32_MAX));
    if (!reader.failed()) tensor.group = names.intern(group);
  }
  if (flags & kNumbers) {
    numbers.resize(reader.count());
    for (int64_t& number : numbers) number = static_cast<int64_t>(reader.varint(kMaxInt64));
  }
  if (!reader.failed()) tensor.name = names.intern(name);
}

void put_members(ByteWriter& writer, const std::vector<int>& members) {
  writer.varint(members.size());
  for (const int member : members) writer.varint(static_cast<uint64_t>(member));
}

void read_members(ByteReader& reader, int set_size, std::vector<int>& members) {
  members.resize(reader.count());
  int above = -1;
  for (int& member : members) {
    member = static_cast<int>(reader.varint(static_cast<uint64_t>(set_size) - 1));
    if (member <= above) reader.fail("members are not in order");
    above = member;
  }
}

void put_fresh(ByteWriter& writer, const Decision& decision, const NameTable& names) {
  put_tensor(writer, decision, decision.rows, names);
  writer.varint(decision.cache_id);
}

void read_fresh(ByteReader& reader, int set_size, Decision& decision, NameTable& names) {
  read_tensor(reader, set_size, decision, decision.rows, names);
  decision.cache_id = static_cast<uint32_t>(reader.varint(UINT32_MAX));
  const auto p = static_cast<size_t>(set_size);
  size_t expected = 0;
  if (decision.kind == OpKind::allgather) expected = p;
  if (decision.kind == OpKind::alltoall) expected = p * p;
  if (expected > 0 && decision.shape.dim_count() == 0) reader.fail("a decision about rows has no dimension");
  if (decision.rows.size() != expected) reader.fail("a decision has a wrong number of rows");
}

void put_failed(ByteWriter& writer, const FreshDecision& fresh, const NameTable& names) {
  writer.text(names.text(fresh.decision.name));
  writer.u8(static_cast<uint8_t>(fresh.decision.kind));
  writer.u8(static_cast<uint8_t>(fresh.decision.status.code()));
  writer.varint(static_cast<uint64_t>(int64_t{fresh.decision.status.culprit()} + 1));
  writer.text(fresh.decision.status.text());
  put_members(writer, fresh.asked);
}

void read_failed(ByteReader& reader, int set_size, FreshDecision& fresh, NameTable& names) {
  const std::string_view name = reader.text();
  const auto kind = op_kind_from_number(reader.u8());
  const uint8_t code = reader.u8();
  const auto culprit = static_cast<int32_t>(reader.varint(INT32_MAX)) - 1;
  const std::string_view words = reader.text();
  read_members(reader, set_size, fresh.asked);
  if (!kind) return reader.fail("unknown kind of operation");
  if (code == 0 || code > static_cast<uint8_t>(Code::not_a_member)) return reader.fail("unknown status code");
  if (reader.failed()) return;
  fresh.decision.kind = *kind;
  fresh.decision.name = names.intern(name);
  fresh.decision.status = Status(static_cast<Code>(code), std::string(words), culprit);
}

void read_item(ByteReader& reader, int set_size, ListMessage& message, NameTable& names) {
  const uint8_t kind = reader.u8();
  if (kind > static_cast<uint8_t>(ListItemKind::join)) return reader.fail("unknown kind of item");
  ListItem item{static_cast<ListItemKind>(kind), 0};
  switch (item.kind) {
    case ListItemKind::repeat:
    case ListItemKind::evict:
      item.value = static_cast<uint32_t>(reader.varint(UINT32_MAX));
      break;
    case ListItemKind::join:
      item.value = static_cast<uint32_t>(reader.varint(static_cast<uint64_t>(set_size) - 1));
      break;
    case ListItemKind::fresh:
      item.value = static_cast<uint32_t>(message.fresh.size());
      read_fresh(reader, set_size, message.fresh.emplace_back().decision, names);
      break;
    case ListItemKind::failed:
      item.value = static_cast<uint32_t>(message.fresh.size());
      read_failed(reader, set_size, message.fresh.emplace_back(), names);
      break;
  }
  message.items.push_back(item);
}

void read_head(ByteReader& reader, MessageKind kind) {
  if (reader.u8() != kControlVersion) reader.fail("unknown version");
  if (reader.u8() != kind) reader.fail("another kind of message was expected");
}

}  // namespace

void encode(const Announcement& message, const NameTable& names, std::vector<std::byte>& out) {
  ByteWriter writer(out);
  writer.u8(kControlVersion);
  writer.u8(kAnnouncement);
  writer.u8(static_cast<uint8_t>((message.urgent ? kUrgent : 0) | (message.joined ? kJoined : 0)));
  writer.varint(message.applied);
  writer.varint(message.repeats.size());
  for (const Repeat& repeat : message.repeats) {
    writer.varint(repeat.cache_id);
    writer.varint(repeat.generation);
  }
  writer.varint(message.requests.size());
  for (const Request& request : message.requests) put_tensor(writer, request, request.splits, names);
}

Status decode(std::span<const std::byte> bytes, int set_size, NameTable& names, Announcement& out) {
  ByteReader reader(bytes);
  read_head(reader, kAnnouncement);
  const uint8_t flags = reader.u8();
  if (flags & ~(kUrgent | kJoined)) reader.fail("unknown flag");
  out.urgent = flags & kUrgent;
  out.joined = flags & kJoined;
  out.applied = reader.varint();
  out.repeats.resize(reader.count(2));
  for (Repeat& repeat : out.repeats) {
    repeat.cache_id = static_cast<uint32_t>(reader.varint(UINT32_MAX));
    repeat.generation = static_cast<uint32_t>(reader.varint(UINT32_MAX));
  }
  out.requests.clear();
  // One at a time: a Request takes far more room than its shortest form.
  const size_t request_count = reader.count(7);
  for (size_t i = 0; i < request_count && !reader.failed(); ++i) {
    Request& request = out.requests.emplace_back();
    read_tensor(reader, set_size, request, request.splits, names);
  }
  return reader.finish("announcement");
}

void encode(const ListMessage& message, const NameTable& names, std::vector<std::byte>& out) {
  ByteWriter writer(out);
  writer.u8(kControlVersion);
  writer.u8(kList);
  writer.varint(message.number);
  writer.varint(message.fusion_bytes);
  put_members(writer, message.joined);
  writer.varint(message.items.size());
  for (const ListItem& item : message.items) {
    writer.u8(static_cast<uint8_t>(item.kind));
    switch (item.kind) {
      case ListItemKind::repeat:
      case ListItemKind::evict:
      case ListItemKind::join:
        writer.varint(item.value);
        break;
      case ListItemKind::fresh:
        put_fresh(writer, message.fresh[item.value].decision, names);
        break;
      case ListItemKind::failed:
        put_failed(writer, message.fresh[item.value], names);
        break;
    }
  }
}

Status decode(std::span<const std::byte> bytes, int set_size, NameTable& names, ListMessage& out) {
  ByteReader reader(bytes);
  out.clear();
  read_head(reader, kList);
  out.number = reader.varint();
  out.fusion_bytes = static_cast<size_t>(reader.varint(SIZE_MAX));
  read_members(reader, set_size, out.joined);
  if (out.joined.size() == static_cast<size_t>(set_size)) reader.fail("a list skips every member");
  const size_t item_count = reader.count(2);
  for (size_t i = 0; i < item_count && !reader.failed(); ++i) read_item(reader, set_size, out, names);
  return reader.finish("decision list");
}

}  // namespace halay::wire
