// What a world says of itself: counters, and words for verdicts.
#include "base/text.h"
#include "engine/world.h"

namespace halay::engine {

std::string World::stats(EngineToken&) const {
  control::Counters control;
  for (const auto& [id, set] : sets_) {
    const control::Counters& one = set->control->counters();
    control.requests_sent += one.requests_sent;
    control.repeats_sent += one.repeats_sent;
    control.messages_sent += one.messages_sent;
    control.message_bytes_sent += one.message_bytes_sent;
    control.cache_hits += one.cache_hits;
    control.cache_misses += one.cache_misses;
    control.lists += one.lists;
    control.stall_warnings += one.stall_warnings;
  }
  transport::ChannelCounters channels;
  for (int32_t rank = 0; rank < fabric_->size(); ++rank) {
    if (rank == fabric_->rank()) continue;
    const transport::ChannelCounters& one = fabric_->channel(rank)->counters();
    channels.frames_sent += one.frames_sent;
    channels.frames_received += one.frames_received;
    channels.bytes_sent += one.bytes_sent;
    channels.bytes_received += one.bytes_received;
    channels.unexpected_bytes += one.unexpected_bytes;
  }
  const execute::ExecutorCounters& executor = executor_->counters();
  return text("operations_completed ", counters_.operations, "\noperations_failed ", counters_.failures, "\nrounds ",
              counters_.rounds, "\nprocess_sets ", sets_.size(), "\nrequests_sent ", control.requests_sent,
              "\nrepeats_sent ", control.repeats_sent, "\ncontrol_messages_sent ", control.messages_sent,
              "\ncontrol_bytes_sent ", control.message_bytes_sent, "\ncache_hits ", control.cache_hits,
              "\ncache_misses ", control.cache_misses, "\ndecision_lists ", control.lists, "\nstall_warnings ",
              control.stall_warnings, "\nframes_sent ", channels.frames_sent, "\nframes_received ",
              channels.frames_received, "\nbytes_sent ", channels.bytes_sent, "\nbytes_received ",
              channels.bytes_received, "\nunexpected_bytes ", channels.unexpected_bytes, "\nbatches ", executor.batches,
              "\ntensors ", executor.tensors, "\ntensor_bytes ", executor.bytes, "\ntiny_batches ", executor.tiny,
              "\nplans_made ", executor.plans_made, "\nplans_reused ", executor.plans_reused, "\nscratch_bytes ",
              executor.scratch_bytes, "\nscratch_bytes_peak ", executor.scratch_bytes_peak, "\n");
}

std::string World::describe(EngineToken&, Time now) const {
  std::string out =
      text("rank ", fabric_->rank(), " of ", fabric_->size(), ", ", counters_.operations, " operations completed\n");
  if (!status_.ok()) out += text("the world is lost: ", status_.text(), "\n");
  for (const auto& [id, set] : sets_) {
    out += text(set->label, ": ", set->control->undecided(), " undecided\n");
    for (int member = 0; member < set->member_count(); ++member) {
      const std::string heard = set->control->last_heard(member, now);
      if (!heard.empty()) out += text("  rank ", set->ranks[static_cast<size_t>(member)], ": ", heard, "\n");
    }
  }
  for (const Operation* operation : parts_.handles.pending()) {
    const Request& request = operation->submission.request;
    out += text("in flight: ", request.kind, " '", parts_.names.text(request.name), "' ", request.dtype, " ",
                text_of(request.shape), operation->decided.load() ? ", runs\n" : ", waits for other ranks\n");
  }
  return out + executor_->describe();
}

}  // namespace halay::engine
