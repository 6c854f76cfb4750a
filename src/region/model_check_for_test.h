// Explores every order in which a few processes can take their steps; for the model tests of the shared-memory
// protocols.
//
// Thread: any (no state).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace halay::region {

struct Exploration {
  size_t states = 0;
  size_t endings = 0;               // states in which nobody can go on
  std::vector<std::string> faults;  // what `check` said, each once
};

// An action changes the state and returns true, or returns false if it cannot be taken now. `check` looks at every
// state (ending: nobody can go on) and returns what is wrong, or nothing.
template <typename State>
Exploration explore(const State& start, const std::vector<std::function<bool(State&)>>& actions,
                    const std::function<std::string(const State&, bool ending)>& check) {
  Exploration result;
  std::set<State> seen{start};
  std::vector<State> todo{start};
  std::set<std::string> faults;
  while (!todo.empty()) {
    const State state = todo.back();
    todo.pop_back();
    bool ending = true;
    for (const auto& action : actions) {
      State next = state;
      if (!action(next)) continue;
      ending = false;
      if (seen.insert(next).second) todo.push_back(next);
    }
    result.endings += ending;
    if (std::string fault = check(state, ending); !fault.empty()) faults.insert(std::move(fault));
  }
  result.states = seen.size();
  result.faults.assign(faults.begin(), faults.end());
  return result;
}

// A processor's stores on their way to memory: seen by itself at once, by others later, in order.
template <size_t kPlaces>
struct StoreBuffer {
  struct Store {
    int place = 0, value = 0;
    auto operator<=>(const Store&) const = default;
  };
  std::array<Store, 4> stores{};
  int count = 0;
  auto operator<=>(const StoreBuffer&) const = default;

  void store(int place, int value) { stores[static_cast<size_t>(count++)] = {place, value}; }
  int load(const std::array<int, kPlaces>& memory, int place) const {
    for (int i = count - 1; i >= 0; --i) {
      if (stores[static_cast<size_t>(i)].place == place) return stores[static_cast<size_t>(i)].value;
    }
    return memory[static_cast<size_t>(place)];
  }
  bool drain_one(std::array<int, kPlaces>& memory) {
    if (count == 0) return false;
    memory[static_cast<size_t>(stores[0].place)] = stores[0].value;
    for (size_t i = 1; i < stores.size(); ++i) stores[i - 1] = stores[i];
    stores.back() = {};
    --count;
    return true;
  }
};

}  // namespace halay::region
