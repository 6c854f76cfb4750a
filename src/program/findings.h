// What `halay doctor` looks at: each a line with what was found and, where it is not well, what to do.
// Thread: the main thread.
#pragma once

#include <string>
#include <vector>

namespace halay::program {

enum class Health { well, note, problem };

struct Finding {
  Health health = Health::well;
  std::string topic;   // "shared memory"
  std::string text;    // what was found
  std::string advice;  // what to do; empty if nothing
};

std::vector<Finding> look_at_machine();
std::vector<Finding> look_at_network(const std::vector<std::string>& environment);
std::vector<Finding> look_at_python(const std::vector<std::string>& environment);
std::vector<Finding> look_at_knobs(const std::vector<std::string>& environment);

// "[ok]   cpu: 8 cores"; advice on a line of its own.
std::string shown(const std::vector<Finding>& findings);

// "1.5 GiB"
std::string size_text(double bytes);

}  // namespace halay::program
