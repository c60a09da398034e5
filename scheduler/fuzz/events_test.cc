// The fuzzer's target on seeded random bytes, with g++: many short worlds.
#include "scheduler/fuzz/events.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/prng.h"

namespace sched {
namespace {

// For builds without a fuzzer. Each seed is a world of its own, and its events are as many as the
// bytes last for. KUBEGANG_LONG plays more of them.
TEST(SchedulerEvents, HoldTheirInvariantsOnRandomBytes) {
  const int rounds = std::getenv("KUBEGANG_LONG") != nullptr ? 20'000 : 300;
  for (int seed = 0; seed < rounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    base::Prng prng{static_cast<std::uint64_t>(seed)};
    std::vector<std::uint8_t> bytes(1'500);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(prng.below(256));
    fuzz_events(bytes);
  }
}

}  // namespace
}  // namespace sched
