#include "transport/mesh.h"

#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "net/poller.h"
#include "region/local_socket.h"

namespace halay::transport {
namespace {

constexpr int64_t kAddressPatienceMs = 5'000;  // then the next address of the same rank is tried
constexpr int64_t kStrangerPatienceMs = 5'000;
constexpr int64_t kRetryMs = 50;
constexpr size_t kMostStrangers = 256;

// Tries the ways to one lower rank, one after the other, round and round.
struct Caller {
  int32_t target = -1;
  std::vector<std::string> ways;  // "" for the local socket, else a TCP address
  size_t next_way = 0;
  std::unique_ptr<Conversation> conversation;
  Time retry_at;
  std::string reason;  // why the last try failed
  Status turned_away;  // somebody is there, and does not want us
  Status refusal;      // and no other way is left
};

class MeshBuilder {
 public:
  explicit MeshBuilder(const MeshPlan& plan)
      : plan_(plan),
        surroundings_{plan.identity, plan.pair_bytes, plan.bell},
        links_(plan.world.size()),
        missing_(plan.world.size() - 1) {
    for (int32_t rank = 0; rank < plan.identity.me; ++rank) callers_.push_back(caller_for(rank));
  }

  Result<std::vector<MeshLink>> run() {
    for (const Caller& caller : callers_) {
      if (caller.ways.empty()) {
        return Status::unsupported(text("rank ", plan_.identity.me, " has no way to rank ", caller.target,
                                        ": transport '", plan_.world[0].transport, "' does not reach it"));
      }
    }
    while (missing_ > 0) {
      const Time now = system_clock().now();
      if (now >= plan_.deadline) return missing_status();
      for (Caller& caller : callers_) {
        call(caller, now);
        if (!caller.refusal.ok()) return caller.refusal;
      }
      drop_expired(now);
      if (missing_ > 0) wait();
    }
    return std::move(links_);
  }

 private:
  bool same_machine(int32_t rank) const {
    return plan_.world[static_cast<size_t>(rank)].machine ==
           plan_.world[static_cast<size_t>(plan_.identity.me)].machine;
  }

  Caller caller_for(int32_t rank) const {
    Caller caller;
    caller.target = rank;
    const DoorAddress& address = plan_.world[static_cast<size_t>(rank)];
    const bool near = same_machine(rank);
    if (plan_.allow_local && near && !address.local_name.empty()) caller.ways.emplace_back();
    if (!plan_.allow_tcp) return caller;
    std::vector<std::string> loopback, others;
    for (const std::string& tcp : address.tcp_addresses) {
      const auto parsed = net::Address::parse(tcp);
      if (parsed.ok()) (parsed.value().is_loopback() ? loopback : others).push_back(tcp);
    }
    // Another machine's loopback is not ours; our own is the shortest way.
    if (near) caller.ways.insert(caller.ways.end(), loopback.begin(), loopback.end());
    caller.ways.insert(caller.ways.end(), others.begin(), others.end());
    return caller;
  }

  bool linked(int32_t rank) const { return links_[static_cast<size_t>(rank)].made(); }

  void keep(Conversation& conversation) {
    const int32_t rank = conversation.peer();
    MeshLink& link = links_[static_cast<size_t>(rank)];
    if (!link.made()) --missing_;
    link = conversation.take_link();  // a second one from the same rank: it gave the first one up
    const DoorAddress& address = plan_.world[static_cast<size_t>(rank)];
    const DoorAddress& mine = plan_.world[static_cast<size_t>(plan_.identity.me)];
    const bool comparable = same_machine(rank) && address.process_space == mine.process_space;
    if (comparable && address.process != mine.process) {
      link.process_watch = region::watch_process(static_cast<int32_t>(address.process));
    }
    HALAY_LOG(debug, "rank ", plan_.identity.me, ": connected with rank ", rank, " by ",
              conversation.local() ? std::string("shared memory") : conversation.where);
  }

  void call(Caller& caller, Time now) {
    if (linked(caller.target) || caller.conversation || now < caller.retry_at) return;
    const std::string& way = caller.ways[caller.next_way];
    if (way.empty()) {
      Result<UniqueFd> socket = region::connect_local(plan_.world[static_cast<size_t>(caller.target)].local_name);
      if (!socket.ok()) return try_next(caller, socket.status(), now);
      if (!socket.value()) {
        caller.retry_at = now.plus_ms(kRetryMs);
        return;
      }
      caller.conversation = std::make_unique<Conversation>(surroundings_, caller.target, std::move(socket).value());
      return;
    }
    Result<net::Address> address = net::Address::parse(way);
    Result<net::Connecting> connecting =
        address.ok() ? net::Connecting::start(address.value()) : Result<net::Connecting>(address.status());
    if (!connecting.ok()) return try_next(caller, connecting.status(), now);
    caller.conversation = std::make_unique<Conversation>(surroundings_, caller.target, std::move(connecting).value());
    if (caller.ways.size() > 1) caller.conversation->expires = now.plus_ms(kAddressPatienceMs);
  }

  void try_next(Caller& caller, const Status& why, Time now) {
    caller.reason = why.text();
    caller.conversation.reset();
    caller.next_way = (caller.next_way + 1) % caller.ways.size();
    caller.retry_at = caller.next_way == 0 ? now.plus_ms(kRetryMs) : now;
    // Behind a wrong address there may be another job: only when no other way is left it is our affair.
    if (why.code() == Code::invalid_argument) caller.turned_away = why;
    if (caller.next_way == 0) caller.refusal = caller.turned_away;
  }

  void advance(Caller& caller) {
    const Status status = caller.conversation->advance();
    if (!status.ok()) return try_next(caller, status, system_clock().now());
    if (!caller.conversation->done()) return;
    keep(*caller.conversation);
    caller.conversation.reset();
  }

  // True if the conversation is over, well or not.
  bool advance_stranger(Conversation& stranger) {
    const Status status = stranger.advance();
    if (!status.ok()) {
      // Who only goes away has said nothing.
      if (status.code() != Code::peer_lost) turned_away_ = status.text();
      HALAY_LOG(debug, "rank ", plan_.identity.me, ": ", status.text());
      return true;
    }
    if (!stranger.done()) return false;
    keep(stranger);
    return true;
  }

  void accept() {
    while (plan_.local_listener) {
      UniqueFd socket = region::accept_local(plan_.local_listener->get());
      if (!socket) break;
      welcome(std::make_unique<Conversation>(surroundings_, std::move(socket)));
    }
    while (plan_.tcp_listener) {
      Result<std::unique_ptr<net::Stream>> stream = plan_.tcp_listener->accept();
      if (!stream.ok() || !stream.value()) break;
      welcome(std::make_unique<Conversation>(surroundings_, std::move(stream).value()));
    }
  }

  void welcome(std::unique_ptr<Conversation> stranger) {
    if (strangers_.size() >= kMostStrangers) strangers_.erase(strangers_.begin());
    stranger->expires = system_clock().now().plus_ms(kStrangerPatienceMs);
    strangers_.push_back(std::move(stranger));
  }

  void drop_expired(Time now) {
    std::erase_if(strangers_, [now](const auto& stranger) { return stranger->expires <= now; });
    for (Caller& caller : callers_) {
      if (!caller.conversation || caller.conversation->expires > now) continue;
      try_next(caller, Status::timeout(text("no answer from ", caller.conversation->where)), now);
    }
  }

  static pollfd entry_for(const Conversation& conversation) {
    return {conversation.descriptor(), static_cast<short>(conversation.wants_write() ? POLLIN | POLLOUT : POLLIN), 0};
  }

  void wait() {
    std::vector<pollfd> polled;
    Time until = plan_.deadline;
    for (const Caller& caller : callers_) {
      if (caller.conversation) {
        polled.push_back(entry_for(*caller.conversation));
        until = std::min(until, caller.conversation->expires);
      } else if (!linked(caller.target)) {
        until = std::min(until, caller.retry_at);
      }
    }
    for (const auto& stranger : strangers_) {
      polled.push_back(entry_for(*stranger));
      until = std::min(until, stranger->expires);
    }
    if (plan_.local_listener) polled.push_back({plan_.local_listener->get(), POLLIN, 0});
    if (plan_.tcp_listener) polled.push_back({plan_.tcp_listener->fd(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), net::milliseconds_until(until)) <= 0) return;

    size_t at = 0;
    for (Caller& caller : callers_) {
      if (caller.conversation && polled[at++].revents != 0) advance(caller);
    }
    std::vector<std::unique_ptr<Conversation>> staying;
    for (auto& stranger : strangers_) {
      if (polled[at++].revents == 0 || !advance_stranger(*stranger)) staying.push_back(std::move(stranger));
    }
    strangers_ = std::move(staying);
    accept();
  }

  Status missing_status() const {
    std::vector<int32_t> ranks;
    std::string reasons;
    for (int32_t rank = 0; rank < plan_.identity.size; ++rank) {
      if (rank != plan_.identity.me && !linked(rank)) ranks.push_back(rank);
    }
    for (const Caller& caller : callers_) {
      if (!linked(caller.target) && !caller.reason.empty())
        reasons += text("; rank ", caller.target, ": ", caller.reason);
    }
    if (!turned_away_.empty()) reasons += text("; ", turned_away_);
    return Status(Code::timeout,
                  text("rank ", plan_.identity.me, ": the world of ", plan_.identity.size,
                       " ranks was not complete in time; missing: ranks ", ranks, reasons),
                  ranks.size() == 1 ? ranks[0] : -1);
  }

  const MeshPlan& plan_;
  const Conversation::Surroundings surroundings_;
  std::vector<MeshLink> links_;
  size_t missing_;
  std::vector<Caller> callers_;
  std::vector<std::unique_ptr<Conversation>> strangers_;
  std::string turned_away_;
};

}  // namespace

Result<std::vector<MeshLink>> build_mesh(const MeshPlan& plan) { return MeshBuilder(plan).run(); }

}  // namespace halay::transport
