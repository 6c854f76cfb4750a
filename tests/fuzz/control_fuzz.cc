// Any bytes into the parsers of the control messages, and what they accept into the state machines behind them. First
// byte: which message; second byte: the size of the set.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/name_table.h"
#include "control/set_control.h"
#include "wire/control_codec.h"

namespace {

using namespace halay;

template <typename Message>
void parse(std::span<const std::byte> bytes, int set_size) {
  NameTable names;
  Message message, again;
  if (!wire::decode(bytes, set_size, names, message).ok()) return;
  std::vector<std::byte> first, second;
  wire::encode(message, names, first);
  HALAY_ASSERT(wire::decode(first, set_size, names, again).ok());
  wire::encode(again, names, second);
  HALAY_ASSERT(first == second);
}

// A member or the decider must answer anything with a Status.
void receive(std::span<const std::byte> bytes, int set_size, int me) {
  NameTable names;
  control::SetSpec spec{"process set 0", {}, me};
  for (int member = 0; member < set_size; ++member) spec.ranks.push_back(member);
  control::SetControl control(spec, control::Limits{}, names);
  Request request;
  request.name = names.intern("x");
  control.submit(static_cast<Ticket>(1), request, true, Time{});
  control.step(Time{});
  if (!control.receive(me == 0 ? 1 : 0, bytes, Time{}).ok()) return;
  control.step(Time{1});
  while (control.next_list()) continue;
  control.step(Time::never());
  while (control.next_list()) continue;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 2, size - 2);
  const int set_size = 2 + data[1] % 7;
  if (data[0] % 2 == 0) {
    parse<Announcement>(bytes, set_size);
    receive(bytes, set_size, 0);
  } else {
    parse<ListMessage>(bytes, set_size);
    receive(bytes, set_size, 1);
  }
  return 0;
}
