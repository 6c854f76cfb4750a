#include "rendezvous/store_server.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "net/errors.h"
#include "net/frame.h"
#include "net/listener.h"
#include "net/poller.h"
#include "rendezvous/store_protocol.h"
#include "rendezvous/store_table.h"

namespace halay::rendezvous {
namespace {

constexpr uint64_t kStopTag = 0, kListenTag = 1, kFirstClientTag = 2;
constexpr int64_t kProofTimeoutMs = 10'000;
constexpr uint64_t kWaitMostMs = 7ull * 24 * 3600 * 1000;
constexpr size_t kClientsMost = 16'384;

// A request whose keys are not there yet.
struct Waiter {
  StoreRequest request;
  size_t have_count = 0;
  Time deadline;
  size_t wanted_count() const { return request.kind == StoreKind::get ? 1 : request.count; }
  bool wants(std::string_view key) const {
    return request.kind == StoreKind::get ? key == request.key : key.starts_with(request.key);
  }
};

struct Client {
  explicit Client(std::unique_ptr<net::Stream> s) : stream(std::move(s)) {}
  std::unique_ptr<net::Stream> stream;
  net::FrameReader reader{kProofBytesMost};
  net::FrameWriter writer;
  std::string who;  // "pid 12, uid 1000", for messages
  std::byte nonce[kNonceBytes] = {};
  bool proved = false;
  Time proof_deadline;
  std::optional<Waiter> waiter;
};

class Server final : public StoreServer {
 public:
  Server(std::string job_key, net::Listener listener, net::Poller poller, UniqueFd stop)
      : job_key_(std::move(job_key)),
        listener_(std::move(listener)),
        poller_(std::move(poller)),
        stop_(std::move(stop)),
        address_(listener_.address().text()) {}

  ~Server() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  }

  Status begin() {
    HALAY_RETURN_IF_ERROR(poller_.add(stop_.get(), net::Interest::read, kStopTag));
    HALAY_RETURN_IF_ERROR(poller_.add(listener_.fd(), net::Interest::read, kListenTag));
    thread_ = std::jthread([this] { serve(); });
    return {};
  }

  const std::string& address() const override { return address_; }

 private:
  void serve() {
    while (true) {
      net::PollEvent events[64];
      const size_t count = poller_.wait(next_deadline(), events);
      for (size_t i = 0; i < count; ++i) {
        if (events[i].tag == kStopTag) return;
        if (events[i].tag == kListenTag) {
          accept_all();
        } else if (const auto at = clients_.find(events[i].tag); at != clients_.end()) {
          keep_or_drop(at->first, serve_client(at->second));
        }
      }
      expire(system_clock().now());
    }
  }

  Time next_deadline() const {
    Time next = Time::never();
    for (const auto& [tag, client] : clients_) {
      if (!client.proved) next = std::min(next, client.proof_deadline);
      if (client.waiter) next = std::min(next, client.waiter->deadline);
    }
    return next;
  }

  void accept_all() {
    while (true) {
      Result<std::unique_ptr<net::Stream>> stream = listener_.accept();
      if (!stream.ok()) {
        HALAY_LOG(warning, "store: ", stream.status().text());
        return;
      }
      if (stream.value() == nullptr) return;
      if (const Status admitted = admit(std::move(stream).value()); !admitted.ok()) {
        HALAY_LOG(warning, "store: dropped a client: ", admitted.text());
      }
    }
  }

  Status admit(std::unique_ptr<net::Stream> stream) {
    HALAY_TRY(const net::PeerIdentity peer, net::peer_identity(*stream));
    const std::string who = text("pid ", peer.pid, ", uid ", peer.uid);
    if (peer.uid != ::geteuid() && peer.uid != 0) return Status::invalid_argument(text(who, ": another user"));
    if (clients_.size() >= kClientsMost)
      return Status::no_memory(text(who, ": there are ", clients_.size(), " already"));
    const uint64_t tag = next_tag_++;
    Client& client = clients_.emplace(tag, std::move(stream)).first->second;
    client.who = who;
    client.proof_deadline = system_clock().now().plus_ms(kProofTimeoutMs);
    random_bytes(client.nonce);
    client.writer.queue(static_cast<uint32_t>(StoreKind::challenge), client.nonce);
    Status status = poller_.add(client.stream->fd(), net::Interest::read, tag);
    if (status.ok()) status = flush(tag, client);
    if (!status.ok()) drop(tag);
    return status;
  }

  Status serve_client(Client& client) {
    while (true) {
      HALAY_TRY(std::optional<net::Frame> frame, client.reader.read(*client.stream));
      if (!frame) return {};
      HALAY_RETURN_IF_ERROR(client.proved ? answer(client, *frame) : check_proof(client, *frame));
      if (client.writer.queued_bytes() > kReplyBytesMost) return Status::no_memory("does not read its answers");
    }
  }

  Status check_proof(Client& client, const net::Frame& frame) {
    ByteReader reader(frame.payload);
    const std::span<const std::byte> nonce = reader.bytes(kNonceBytes);
    const std::span<const std::byte> proof = reader.bytes(sizeof(Digest));
    const bool well_formed = frame.kind == static_cast<uint32_t>(StoreKind::proof) && reader.complete();
    if (!well_formed || !same_digest(proof, prove(job_key_, "client", client.nonce, nonce))) {
      return Status::invalid_argument("wrong key of the job");
    }
    client.proved = true;
    client.reader.set_limit(kRequestBytesMost);
    client.writer.queue(static_cast<uint32_t>(StoreKind::welcome), prove(job_key_, "server", client.nonce, nonce));
    return {};
  }

  Status answer(Client& client, const net::Frame& frame) {
    HALAY_TRY(StoreRequest request, parse_request(frame.kind, frame.payload));
    client.waiter.reset();  // a new request takes the place of one that still waits
    if (request.kind == StoreKind::put) {
      const std::string key = request.key;
      const Result<bool> stored = table_.put(std::move(request.key), std::move(request.value));
      send(client, {stored.ok() ? StoreKind::stored : StoreKind::refused, true, {}, stored.status().text()});
      if (stored.ok() && stored.value()) wake_waiters(key);
      return {};
    }
    const Time deadline = system_clock().now().plus_ms(static_cast<int64_t>(std::min(request.timeout_ms, kWaitMostMs)));
    Waiter waiter{std::move(request), 0, deadline};
    const bool one = waiter.request.kind == StoreKind::get;
    waiter.have_count = one ? table_.find(waiter.request.key) != nullptr : table_.count_with_prefix(waiter.request.key);
    client.waiter = std::move(waiter);
    if (client.waiter->have_count >= client.waiter->wanted_count()) send_pairs(client);
    return {};
  }

  // Nobody looks again and again: the put that completes a wait answers it.
  void wake_waiters(std::string_view key) {
    for (auto& [tag, client] : clients_) {
      if (!client.waiter || !client.waiter->wants(key)) continue;
      if (++client.waiter->have_count < client.waiter->wanted_count()) continue;
      send_pairs(client);
      unflushed_.push_back(tag);
    }
  }

  void send_pairs(Client& client) {
    StoreReply reply{StoreKind::pairs, client.waiter->have_count >= client.waiter->wanted_count(), {}, {}};
    const std::string& key = client.waiter->request.key;
    if (client.waiter->request.kind == StoreKind::collect) {
      reply.pairs = table_.with_prefix(key);
    } else if (const std::vector<std::byte>* value = table_.find(key)) {
      reply.pairs.push_back({key, *value});
    }
    client.waiter.reset();
    send(client, reply);
  }

  static void send(Client& client, const StoreReply& reply) {
    client.writer.queue(static_cast<uint32_t>(reply.kind), encode(reply));
  }

  Status flush(uint64_t tag, Client& client) {
    HALAY_TRY(const bool all, client.writer.flush(*client.stream));
    return poller_.change(client.stream->fd(), all ? net::Interest::read : net::Interest::both, tag);
  }

  void keep_or_drop(uint64_t tag, Status status) {
    const auto at = clients_.find(tag);
    if (status.ok()) status = flush(tag, at->second);
    if (!status.ok()) {
      // Who closes, or dies, is simply done.
      if (status.code() != Code::peer_lost) {
        HALAY_LOG(warning, "store: dropped a client (", at->second.who, "): ", status.text());
      }
      drop(tag);
    }
    for (const uint64_t other : std::exchange(unflushed_, {})) {
      if (clients_.contains(other)) keep_or_drop(other, {});
    }
  }

  void drop(uint64_t tag) {
    const auto at = clients_.find(tag);
    poller_.remove(at->second.stream->fd());
    clients_.erase(at);
  }

  void expire(Time now) {
    std::vector<uint64_t> silent, late;
    for (auto& [tag, client] : clients_) {
      if (!client.proved && client.proof_deadline <= now) silent.push_back(tag);
      if (client.waiter && client.waiter->deadline <= now) late.push_back(tag);
    }
    for (const uint64_t tag : silent) keep_or_drop(tag, Status::timeout("did not prove the key of the job in time"));
    for (const uint64_t tag : late) {
      if (const auto at = clients_.find(tag); at != clients_.end()) {
        send_pairs(at->second);
        keep_or_drop(tag, {});
      }
    }
  }

  const std::string job_key_;
  net::Listener listener_;
  net::Poller poller_;
  UniqueFd stop_;
  const std::string address_;
  StoreTable table_;
  std::map<uint64_t, Client> clients_;
  std::vector<uint64_t> unflushed_;  // got an answer that somebody else's put completed
  uint64_t next_tag_ = kFirstClientTag;
  std::jthread thread_;  // last: ends before what it uses
};

}  // namespace

Result<std::unique_ptr<StoreServer>> StoreServer::start(std::string job_key) {
  // Named by chance, not by pid: pids of several namespaces meet in one network namespace.
  HALAY_TRY(const net::Address address, net::Address::abstract("halay-" + make_job_key().substr(0, 24)));
  HALAY_TRY(net::Listener listener, net::Listener::open(address));
  HALAY_TRY(net::Poller poller, net::Poller::make());
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return net::system_failure("make an eventfd for", address.text(), errno);
  auto server = std::make_unique<Server>(std::move(job_key), std::move(listener), std::move(poller), std::move(stop));
  HALAY_RETURN_IF_ERROR(server->begin());
  return std::unique_ptr<StoreServer>(std::move(server));
}

}  // namespace halay::rendezvous
