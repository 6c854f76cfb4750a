#include "launch/supervisor.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>

#include "base/clock.h"
#include "base/text.h"
#include "launch/descendants.h"
#include "launch/ending.h"
#include "launch/rank_output.h"
#include "launch/signals.h"
#include "launch/spawn.h"
#include "launch/worker_environment.h"
#include "net/poller.h"
#include "rendezvous/store_protocol.h"
#include "rendezvous/store_server.h"

namespace halay::launch {
namespace {

enum Tag : uint64_t { kSignals, kLifeline, kSinkOut, kSinkErr, kFirstOutput };
constexpr int64_t kLeftoverGraceMs = 500;  // for what a worker left running when it ended
constexpr int64_t kDrainAfterLossMs = 500;

class Supervisor {
 public:
  Supervisor(const JobSpec& job, UniqueFd lifeline) : job_(job), lifeline_(std::move(lifeline)) {}

  int run() {
    int exit_code = kExitInternal;
    if (const Status begun = begin(&exit_code); !begun.ok()) {
      end_descendants(0);
      say(begun.text());
      return exit_code;
    }
    while (living_count() > 0) {
      net::PollEvent events[64];
      const size_t count = poller_->wait(ending_.next_deadline(), events);
      for (size_t i = 0; i < count; ++i) handle(events[i].tag);
      ending_.advance(system_clock().now(), pids_);
      balance();
    }
    return finish();
  }

 private:
  Status begin(int* exit_code) {
    HALAY_TRY(const std::string program, find_program(job_.command.front(), job_.environment, exit_code));
    *exit_code = kExitInternal;
    adopt_orphans();
    allow_many_files();
    signals_ = signal_descriptor();
    HALAY_TRY(net::Poller poller, net::Poller::make());
    poller_.emplace(std::move(poller));
    HALAY_RETURN_IF_ERROR(poller_->add(signals_.get(), net::Interest::read, kSignals));
    HALAY_RETURN_IF_ERROR(poller_->add(lifeline_.get(), net::Interest::read, kLifeline));
    Meeting meeting;
    meeting.job_key = rendezvous::make_job_key();
    HALAY_TRY(store_, rendezvous::StoreServer::start(meeting.job_key));
    meeting.store = store_->address();

    const auto local_size = static_cast<int32_t>(job_.slots.size());
    const ThreadBudget budget = thread_budget(usable_cores(), local_size, job_.environment);
    say(budget.line);
    *exit_code = kExitUsage;
    HALAY_TRY(std::vector<UniqueFd> copies, open_copies());
    *exit_code = kExitCannotRun;
    for (const Slot& slot : job_.slots) {
      HALAY_TRY(Worker worker, spawn(program, job_.command, worker_environment(job_, slot, meeting, budget)));
      pids_.push_back(worker.pid);
      HALAY_RETURN_IF_ERROR(attach(slot.rank, "stdout", std::move(worker.output), copies, out_));
      HALAY_RETURN_IF_ERROR(attach(slot.rank, "stderr", std::move(worker.error), copies, err_));
      if (job_.verbose) say(text("rank ", slot.rank, ": pid ", worker.pid, " on ", slot.host));
    }
    return {};
  }

  // The files of all ranks' output, in the order of outputs_; empty where none are wanted.
  Result<std::vector<UniqueFd>> open_copies() const {
    std::vector<UniqueFd> copies(2 * job_.slots.size());
    if (job_.output_folder.empty()) return copies;
    const auto size = static_cast<int32_t>(job_.slots.size());
    for (size_t i = 0; i < copies.size(); ++i) {
      const auto rank = static_cast<int32_t>(i / 2);
      HALAY_TRY(copies[i], open_copy(job_.output_folder, rank, size, i % 2 == 0 ? "stdout" : "stderr"));
    }
    return copies;
  }

  Status attach(int32_t rank, std::string_view name, UniqueFd pipe, std::vector<UniqueFd>& copies, Sink& sink) {
    UniqueFd copy = std::move(copies[outputs_.size()]);
    const RankOutput& output =
        outputs_.emplace_back(rank, name, std::move(pipe), std::move(copy), sink, job_.prefix_timestamp);
    watched_.push_back(true);
    return poller_->add(output.fd(), net::Interest::read, kFirstOutput + outputs_.size() - 1);
  }

  size_t living_count() const {
    return static_cast<size_t>(std::ranges::count_if(pids_, [](pid_t pid) { return pid > 0; }));
  }

  void handle(uint64_t tag) {
    const Time now = system_clock().now();
    if (tag == kSignals) {
      while (const int number = next_signal(signals_.get())) {
        if (number == SIGCHLD) {
          reap(now);
        } else {
          ending_.passed_on(number, now, pids_);
        }
      }
    } else if (tag == kLifeline) {
      poller_->remove(lifeline_.get());
      ending_.guard_lost(now);
    } else if (tag == kSinkOut || tag == kSinkErr) {
      (tag == kSinkOut ? out_ : err_).flush();
    } else {
      pump(tag - kFirstOutput);
    }
  }

  void pump(size_t index) {
    RankOutput& output = outputs_[index];
    if (output.ended()) return;
    const int fd = output.fd();
    if (watched_[index] && !output.pump()) watched_[index] = false;
    if (output.ended()) poller_->remove(fd);
  }

  void reap(Time now) {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto at = std::ranges::find(pids_, pid);
      if (at == pids_.end()) continue;  // an orphan that came back to us
      const auto rank = static_cast<size_t>(at - pids_.begin());
      *at = -1;
      // What it said last comes before what we say about it.
      pump_all(rank);
      if (status != 0) ending_.rank_failed(static_cast<int32_t>(rank), pid, status, now);
    }
  }

  void pump_all(size_t rank) {
    for (RankOutput* output : {&outputs_[2 * rank], &outputs_[2 * rank + 1]}) {
      const int fd = output->fd();
      while (!output->ended() && !output->sink().full() && output->has_bytes()) output->pump();
      if (fd >= 0 && output->ended()) poller_->remove(fd);
    }
  }

  // Sinks that wait for their reader are watched; ranks whose sink is full are not read until it has room.
  void balance() {
    for (const auto& [sink, tag, on] :
         {std::tuple(&out_, kSinkOut, &out_watched_), std::tuple(&err_, kSinkErr, &err_watched_)}) {
      if (sink->waits_for_reader() == *on) continue;
      if (*on) {
        poller_->remove(sink->fd());
      } else if (!poller_->add(sink->fd(), net::Interest::write, tag).ok()) {
        continue;
      }
      *on = !*on;
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].ended() || watched_[i] != outputs_[i].sink().full()) continue;
      if (watched_[i]) {
        poller_->remove(outputs_[i].fd());
        watched_[i] = false;
      } else {
        watched_[i] = poller_->add(outputs_[i].fd(), net::Interest::read, kFirstOutput + i).ok();
      }
    }
  }

  int finish() {
    end_descendants(kLeftoverGraceMs);
    store_.reset();
    const Time drain_until = ending_.alone() ? system_clock().now().plus_ms(kDrainAfterLossMs) : Time::never();
    for (RankOutput& output : outputs_) {
      while (!output.ended() && output.has_bytes()) {
        output.pump();
        output.sink().drain(drain_until);
        if (system_clock().now() >= drain_until) break;
      }
      output.close();
    }
    out_.drain(drain_until);
    if (!ending_.verdict().empty()) say(ending_.verdict());
    err_.drain(drain_until);
    return ending_.exit_code();
  }

  void say(std::string_view line) { err_.push(text("halay run: ", line, "\n")); }

  const JobSpec& job_;
  UniqueFd lifeline_, signals_;
  std::optional<net::Poller> poller_;
  std::unique_ptr<rendezvous::StoreServer> store_;
  Sink out_{1}, err_{2};
  bool out_watched_ = false, err_watched_ = false;
  std::vector<pid_t> pids_;         // by rank; -1: has ended
  std::deque<RankOutput> outputs_;  // rank * 2, + 1 for stderr
  std::vector<bool> watched_;
  Ending ending_;
};

}  // namespace

int supervise(const JobSpec& job, UniqueFd lifeline) { return Supervisor(job, std::move(lifeline)).run(); }

}  // namespace halay::launch
