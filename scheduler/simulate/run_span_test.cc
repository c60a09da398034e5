#include "scheduler/simulate/run_span.h"

#include <gtest/gtest.h>

#include "scheduler/base/prng.h"

namespace simulate {
namespace {

using std::chrono::seconds;

TEST(RunSpan, WithoutTimetableRunsAllTheTime) {
  const RunSpan span{.from = base::Instant{seconds{10}}, .to = base::Instant{seconds{20}}};
  EXPECT_EQ(run_time(span, base::Instant{}, base::Instant{seconds{15}}), seconds{5});
  EXPECT_TRUE(runs_at(span, base::Instant{seconds{19}}));
  EXPECT_FALSE(runs_at(span, base::Instant{seconds{20}}));
  EXPECT_EQ(when_has_run(span, span.from, seconds{7}), base::Instant{seconds{17}});
}

TEST(RunSpan, NeverEndsWhatIsInNoSlot) {
  auto table = std::make_shared<timetable::Timetable>();
  table->pods_count = 1;
  table->cycle = {{}};
  const RunSpan span{.timetable = table};
  EXPECT_EQ(when_has_run(span, base::Instant{}, seconds{1}), std::nullopt);
  EXPECT_EQ(when_has_run(span, base::Instant{}, seconds{0}), base::Instant{});
}

// Goal: when_has_run is the inverse of run_time. Method: random timetables; at the answer the run
// time is exactly the work, one microsecond before it is less.
TEST(RunSpan, WhenHasRunIsTheInverseOfRunTime) {
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
    auto table = std::make_shared<timetable::Timetable>();
    table->pods_count = 3;
    table->slice = seconds{1 + prng.below(5)};
    base::Instant until{};
    for (std::uint64_t i = prng.below(4); i > 0; --i) {
      until += seconds{1 + prng.below(9)};
      table->plan.push_back({until, random_set()});
    }
    for (std::uint64_t i = 1 + prng.below(5); i > 0; --i) table->cycle.push_back(random_set());
    const RunSpan span{.timetable = table, .pod = 1};
    const base::Instant from{base::Duration{prng.below(20'000'000)}};
    const base::Duration work{1 + prng.below(60'000'000)};
    const std::optional<base::Instant> end = when_has_run(span, from, work);
    if (!end) continue;
    ASSERT_EQ(run_time(span, from, *end), work) << "seed " << kSeed << " round " << round;
    ASSERT_LT(run_time(span, from, *end - base::Duration{1}), work)
        << "seed " << kSeed << " round " << round;
  }
}

}  // namespace
}  // namespace simulate
