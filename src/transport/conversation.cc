#include "transport/conversation.h"

#include <utility>

#include "base/bytes.h"
#include "base/text.h"

namespace halay::transport {
namespace {

constexpr std::byte kMemory{'M'}, kNoMemory{'N'}, kBell{'B'};
constexpr size_t kMostMessageBytes = 1024;

}  // namespace

Conversation::Conversation(const Surroundings& surroundings, UniqueFd local_socket)
    : surroundings_(&surroundings), handshake_(Handshake::acceptor(surroundings.identity)), local_(true) {
  link_.local_socket = std::move(local_socket);
}

Conversation::Conversation(const Surroundings& surroundings, std::unique_ptr<net::Stream> stream)
    : where(stream->peer()), surroundings_(&surroundings), handshake_(Handshake::acceptor(surroundings.identity)) {
  link_.stream = std::move(stream);
}

Conversation::Conversation(const Surroundings& surroundings, int32_t target, UniqueFd local_socket)
    : surroundings_(&surroundings),
      handshake_(Handshake::connector(surroundings.identity, target)),
      local_(true),
      outgoing_side_(true) {
  link_.local_socket = std::move(local_socket);
  say(handshake_.take_output());
}

Conversation::Conversation(const Surroundings& surroundings, int32_t target, net::Connecting connecting)
    : where(connecting.address().text()),
      surroundings_(&surroundings),
      handshake_(Handshake::connector(surroundings.identity, target)),
      outgoing_side_(true),
      connecting_(std::move(connecting)) {
  say(handshake_.take_output());
}

int Conversation::descriptor() const {
  if (connecting_) return connecting_->fd();
  return local_ ? link_.local_socket.get() : link_.stream->fd();
}

void Conversation::say(std::vector<std::byte> bytes, std::vector<int> descriptors) {
  if (!bytes.empty()) outgoing_.push_back({std::move(bytes), std::move(descriptors)});
}

Status Conversation::flush() {
  while (!outgoing_.empty()) {
    Message& message = outgoing_.front();
    if (local_) {
      const region::Passing passed = region::send_local(link_.local_socket.get(), message.bytes, message.descriptors);
      if (passed == region::Passing::would_block) return {};
      if (passed == region::Passing::ended)
        return Status::peer_lost(-1, "the connection was closed during the handshake");
      outgoing_.pop_front();
      continue;
    }
    const std::span<const std::byte> part = message.bytes;
    HALAY_TRY(const size_t written, link_.stream->write_some({&part, 1}));
    if (written < part.size()) {
      message.bytes.erase(message.bytes.begin(), message.bytes.begin() + static_cast<ptrdiff_t>(written));
      return {};
    }
    outgoing_.pop_front();
  }
  return {};
}

// True once incoming_ is one whole message of `count` bytes (locally: of at most so many).
Result<bool> Conversation::receive(size_t count) {
  if (local_) {
    const region::Passing passed = region::receive_local(link_.local_socket.get(), count, message_);
    if (passed == region::Passing::ended)
      return Status::peer_lost(-1, "the connection was closed during the handshake");
    incoming_ = std::move(message_.bytes);
    return passed == region::Passing::done;
  }
  const size_t before = incoming_.size();
  incoming_.resize(count);
  HALAY_TRY(const size_t got, link_.stream->read_some(std::span(incoming_).subspan(before)));
  incoming_.resize(before + got);
  if (link_.stream->ended()) return Status::peer_lost(-1, "the connection was closed during the handshake");
  return incoming_.size() == count;
}

Status Conversation::shake() {
  while (handshake_.awaited_bytes() > 0) {
    const size_t count = handshake_.awaited_bytes();
    HALAY_TRY(const bool whole, receive(count));
    if (!whole) return {};
    if (incoming_.size() != count) return Status::invalid_argument("a connection that is not of halay");
    const Status status = handshake_.receive(incoming_);
    incoming_.clear();
    say(handshake_.take_output());
    HALAY_RETURN_IF_ERROR(flush());
    HALAY_RETURN_IF_ERROR(status);
  }
  return {};
}

Status Conversation::after_handshake() {
  passing_ = true;
  if (!local_) {
    done_ = true;
    return {};
  }
  if (outgoing_side_) return {};
  Result<region::Segment> segment = region::Segment::create("halay-pair", surroundings_->pair_bytes);
  if (!segment.ok()) {
    ByteWriter refusal;
    refusal.bytes({&kNoMemory, 1}).bytes(bytes_of(segment.status().text().substr(0, kMostMessageBytes / 2)));
    say(refusal.take());
    HALAY_RETURN_IF_ERROR(flush());
    return segment.status();
  }
  link_.segment = std::move(segment).value();
  ByteWriter offer;
  offer.bytes({&kMemory, 1}).number(uint64_t{link_.segment.size()});
  say(offer.take(), {link_.segment.descriptor(), surroundings_->bell->descriptor()});
  return flush();
}

Status Conversation::receive_memory() {
  const std::span<const std::byte> offer = incoming_;
  if (!offer.empty() && offer[0] == kNoMemory) {
    return Status::no_memory(text("rank ", peer(), ": ", text_of(offer.subspan(1))));
  }
  ByteReader reader(offer);
  const bool is_memory = reader.number<uint8_t>() == static_cast<uint8_t>(kMemory);
  const auto bytes = reader.number<uint64_t>();
  if (!is_memory || !reader.complete() || message_.descriptors.size() != 2 || bytes != surroundings_->pair_bytes) {
    return Status::internal(text("rank ", peer(), " passed its memory in a way that is not understood"));
  }
  HALAY_TRY(link_.segment, region::Segment::map(std::move(message_.descriptors[0]), surroundings_->pair_bytes));
  link_.segment.close_descriptor();
  link_.peer_bell = region::Doorbell(std::move(message_.descriptors[1]));
  say({kBell}, {surroundings_->bell->descriptor()});
  done_ = true;
  return flush();
}

Status Conversation::receive_bell() {
  if (incoming_.size() != 1 || incoming_[0] != kBell || message_.descriptors.size() != 1) {
    return Status::internal(text("rank ", peer(), " answered with what is no doorbell"));
  }
  link_.peer_bell = region::Doorbell(std::move(message_.descriptors[0]));
  link_.segment.close_descriptor();
  done_ = true;
  return {};
}

Status Conversation::advance() {
  if (connecting_) {
    HALAY_TRY(const bool connected, connecting_->finished());
    if (!connected) return {};
    link_.stream = std::move(*connecting_).take();
    connecting_.reset();
  }
  HALAY_RETURN_IF_ERROR(flush());
  if (!handshake_.complete()) HALAY_RETURN_IF_ERROR(shake());
  if (!handshake_.complete()) return {};
  if (!passing_) HALAY_RETURN_IF_ERROR(after_handshake());
  while (!done_) {
    HALAY_TRY(const bool whole, receive(kMostMessageBytes));
    if (!whole) return {};
    HALAY_RETURN_IF_ERROR(outgoing_side_ ? receive_memory() : receive_bell());
  }
  return {};
}

}  // namespace halay::transport
