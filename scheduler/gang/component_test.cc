#include "scheduler/gang/component.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace sched::gang {
namespace {

TEST(WhenHasRun, NeverEndsWhatIsInNoSlot) {
  timetable::Timetable table;
  table.pods_count = 1;
  table.cycle = {{}};
  EXPECT_EQ(when_has_run(table, 0, base::Instant{}, std::chrono::seconds{1}), std::nullopt);
  EXPECT_EQ(when_has_run(table, 0, base::Instant{}, std::chrono::seconds{0}), base::Instant{});
}

// Goal: when_has_run is the inverse of run_time. Method: random timetables; at the answer the run
// time is exactly the work, one microsecond before it is less.
TEST(WhenHasRun, IsTheInverseOfRunTime) {
  constexpr std::uint64_t kSeed = 77;
  base::Prng prng{kSeed};
  const auto random_set = [&] {
    timetable::PodSet set;
    for (std::uint16_t pod = 0; pod < 3; ++pod) {
      if (prng.below(2) == 0) set.push_back(pod);
    }
    return set;
  };
  for (int round = 0; round < 3'000; ++round) {
    timetable::Timetable table;
    table.pods_count = 3;
    table.slice = std::chrono::seconds{1 + prng.below(5)};
    base::Instant until{};
    for (std::uint64_t i = prng.below(4); i > 0; --i) {
      until += std::chrono::seconds{1 + prng.below(9)};
      table.plan.push_back({until, random_set()});
    }
    for (std::uint64_t i = 1 + prng.below(5); i > 0; --i) table.cycle.push_back(random_set());
    const base::Instant from{base::Duration{prng.below(20'000'000)}};
    const base::Duration work{1 + prng.below(60'000'000)};
    const std::optional<base::Instant> end = when_has_run(table, 1, from, work);
    if (!end) continue;
    ASSERT_EQ(timetable::run_time(table, 1, from, *end), work)
        << "seed " << kSeed << " round " << round;
    ASSERT_LT(timetable::run_time(table, 1, from, *end - base::Duration{1}), work)
        << "seed " << kSeed << " round " << round;
  }
}

}  // namespace
}  // namespace sched::gang
