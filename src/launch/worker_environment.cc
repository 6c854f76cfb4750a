#include "launch/worker_environment.h"

#include <map>

#include "base/text.h"

namespace halay::launch {
namespace {

class Variables {
 public:
  void set(std::string_view name, std::string value) { values_.insert_or_assign(std::string(name), std::move(value)); }
  void set_all(const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      const size_t equals = entry.find('=');
      if (equals != std::string::npos && equals > 0)
        set(std::string_view(entry).substr(0, equals), entry.substr(equals + 1));
    }
  }
  void set_both(std::string_view name, std::string value) {
    set(text("HOROVOD_", name), value);
    set(text("HALAY_", name), std::move(value));
  }
  std::vector<std::string> entries() const {
    std::vector<std::string> out;
    for (const auto& [name, value] : values_) out.push_back(text(name, "=", value));
    return out;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace

std::vector<std::string> worker_environment(const JobSpec& job, const Slot& slot, const Meeting& meeting,
                                            const ThreadBudget& budget) {
  Variables variables;
  variables.set_all(job.environment);
  variables.set_all(budget.settings);
  variables.set("PYTHONUNBUFFERED", "1");
  variables.set_all(job.settings);
  variables.set_both("HOSTNAME", slot.host);
  variables.set_both("RANK", text(slot.rank));
  variables.set_both("SIZE", text(slot.size));
  variables.set_both("LOCAL_RANK", text(slot.local_rank));
  variables.set_both("LOCAL_SIZE", text(slot.local_size));
  variables.set_both("CROSS_RANK", text(slot.cross_rank));
  variables.set_both("CROSS_SIZE", text(slot.cross_size));
  variables.set("HALAY_STORE", meeting.store);
  variables.set("HALAY_JOB_KEY", meeting.job_key);
  return variables.entries();
}

}  // namespace halay::launch
