// Many small worlds, each from a seed. HALAY_SIM_SEEDS says how many; HALAY_SIM_SEED=n runs one of them alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "program.h"
#include "simulation.h"

namespace halay::sim {
namespace {

uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::strtoull(value, nullptr, 10) : otherwise;
}

TEST(ControlSimulation, KeepsItsInvariantsUnderEverySeed) {
  const uint64_t alone = number_from_environment("HALAY_SIM_SEED", 0);
  const uint64_t first = alone ? alone : 1;
  const uint64_t last = alone ? alone : number_from_environment("HALAY_SIM_SEEDS", 1000);
  Report total;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const Program program = make_program(seed);
    const Report report = Simulation(program).run();
    ASSERT_EQ(report.broken, "") << "seed " << seed << ": HALAY_SIM_SEED=" << seed << " runs it alone";
    total.tickets += report.tickets;
    total.failed_tickets += report.failed_tickets;
    total.lists += report.lists;
    total.repeats_sent += report.repeats_sent;
    total.requests_sent += report.requests_sent;
    total.warnings += report.warnings;
  }
  std::printf(
      "%llu worlds: %llu operations, %llu failed as they should, %llu lists, %llu repeats and %llu requests sent, "
      "%llu stall warnings\n",
      static_cast<unsigned long long>(last - first + 1), static_cast<unsigned long long>(total.tickets),
      static_cast<unsigned long long>(total.failed_tickets), static_cast<unsigned long long>(total.lists),
      static_cast<unsigned long long>(total.repeats_sent), static_cast<unsigned long long>(total.requests_sent),
      static_cast<unsigned long long>(total.warnings));
  if (alone) return;
  // A simulation in which these never happen tests nothing.
  EXPECT_GT(total.failed_tickets, 0u);
  EXPECT_GT(total.repeats_sent, 0u);
  EXPECT_GT(total.requests_sent, 0u);
  EXPECT_GT(total.warnings, 0u);
}

}  // namespace
}  // namespace halay::sim
