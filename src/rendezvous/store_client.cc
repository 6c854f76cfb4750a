#include "rendezvous/store_client.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "net/address.h"
#include "net/connect.h"

namespace halay::rendezvous {
namespace {

// The store answers at the request's deadline; this is how long the answer may take to arrive.
constexpr int64_t kAnswerGraceMs = 5'000;

uint64_t milliseconds_left(Time deadline) {
  const int64_t ns = deadline.ns - system_clock().now().ns;
  return ns <= 0 ? 0 : static_cast<uint64_t>(ns) / 1'000'000 + 1;
}

}  // namespace

Result<StoreClient> StoreClient::connect(std::string_view address, std::string_view job_key, Time deadline) {
  HALAY_TRY(const net::Address where, net::Address::parse(address));
  Result<std::unique_ptr<net::Stream>> stream = net::connect(where, deadline);
  if (!stream.ok()) {
    return Status(stream.status().code(), text("cannot reach the launcher's store: ", stream.status().text()));
  }
  StoreClient client(std::move(stream).value());
  HALAY_RETURN_IF_ERROR(client.introduce(job_key, deadline));
  return client;
}

Status StoreClient::introduce(std::string_view job_key, Time deadline) {
  constexpr std::string_view kStage = "prove the job's key to the launcher's store";
  HALAY_TRY(const net::Frame challenge, net::read_frame(*stream_, reader_, kStage, deadline));
  if (challenge.kind != static_cast<uint32_t>(StoreKind::challenge) || challenge.payload.size() != kNonceBytes) {
    return Status::mismatch(text(kStage, ": ", stream_->peer(), " is not a store of this version"));
  }
  std::byte nonce[kNonceBytes];
  random_bytes(nonce);
  ByteWriter proof;
  proof.bytes(nonce).bytes(prove(job_key, "client", challenge.payload, nonce));
  HALAY_RETURN_IF_ERROR(
      net::write_frame(*stream_, static_cast<uint32_t>(StoreKind::proof), proof.view(), kStage, deadline));
  const Result<net::Frame> welcome = net::read_frame(*stream_, reader_, kStage, deadline);
  if (!welcome.ok()) {
    if (welcome.status().code() != Code::peer_lost) return welcome.status();
    return Status::invalid_argument(
        text(kStage, ": refused by ", stream_->peer(), "; HALAY_JOB_KEY is not this job's"));
  }
  if (!same_digest(welcome.value().payload, prove(job_key, "server", challenge.payload, nonce))) {
    return Status::invalid_argument(text(kStage, ": ", stream_->peer(), " does not know the key of this job"));
  }
  return {};
}

Result<StoreReply> StoreClient::ask(const StoreRequest& request, std::string_view stage, Time deadline) {
  HALAY_RETURN_IF_ERROR(
      net::write_frame(*stream_, static_cast<uint32_t>(request.kind), encode(request), stage, deadline));
  HALAY_TRY(const net::Frame frame, net::read_frame(*stream_, reader_, stage, deadline.plus_ms(kAnswerGraceMs)));
  HALAY_TRY(StoreReply reply, parse_reply(frame.kind, frame.payload));
  if (reply.kind == StoreKind::refused) return Status::no_memory(text(stage, ": ", reply.text));
  return reply;
}

Status StoreClient::put(std::string_view key, std::span<const std::byte> value, Time deadline) {
  if (value.size() > kValueBytesMost || key.empty() || key.size() > kKeyBytesMost) {
    return Status::invalid_argument(text("store: '", key, "' with ", value.size(), " bytes; at most ", kKeyBytesMost,
                                         " for the key and ", kValueBytesMost, " for the value"));
  }
  StoreRequest request;
  request.kind = StoreKind::put;
  request.key = key;
  request.value.assign(value.begin(), value.end());
  const Result<StoreReply> reply = ask(request, "put into the launcher's store", deadline);
  return reply.ok() ? Status() : reply.status();
}

Result<std::vector<std::byte>> StoreClient::get(std::string_view key, Time deadline) {
  StoreRequest request;
  request.kind = StoreKind::get;
  request.key = key;
  request.timeout_ms = milliseconds_left(deadline);
  HALAY_TRY(StoreReply reply, ask(request, "get from the launcher's store", deadline));
  if (reply.pairs.empty()) return Status::timeout(text("nobody put '", key, "' into the launcher's store in time"));
  return std::move(reply.pairs.front().value);
}

Result<std::vector<StorePair>> StoreClient::collect(std::string_view prefix, uint32_t count, Time deadline) {
  StoreRequest request;
  request.kind = StoreKind::collect;
  request.key = prefix;
  request.count = count;
  request.timeout_ms = milliseconds_left(deadline);
  HALAY_TRY(StoreReply reply, ask(request, "collect from the launcher's store", deadline));
  return std::move(reply.pairs);
}

}  // namespace halay::rendezvous
