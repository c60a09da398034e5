#include "timetable/timetable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/prng.h"

namespace timetable {
namespace {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

Instant at(Duration since_epoch) {
  return Instant{since_epoch};
}

PodSet run(const Timetable& timetable, Instant t) {
  const auto span = run_at(timetable, t);
  return {span.begin(), span.end()};
}

// Two gangs of one pod each that take turns every 30 s, after a plan that ends in mid-slot: nothing
// runs until 70 s, pod 1 until 100 s, then slot 3 (90 to 120 s) goes on with pod 1.
Timetable two_gangs() {
  return {.slice = seconds{30},
          .pods_count = 2,
          .plan = {{.until = at(seconds{70}), .run = {}}, {.until = at(seconds{100}), .run = {1}}},
          .cycle = {{0}, {1}}};
}

// Both sides of each seam: between two entries of the plan, from the plan into the middle of a
// slot, and far in the future. A grid that was counted from the end of the plan, or added up slice
// by slice, would be found here.
TEST(RunAt, FollowsThePlanThenTheGridOfTheCycle) {
  const Timetable timetable = two_gangs();
  EXPECT_EQ(run(timetable, at(seconds{-1000})), PodSet{});
  EXPECT_EQ(run(timetable, at(seconds{70}) - Duration{1}), PodSet{});
  EXPECT_EQ(run(timetable, at(seconds{70})), PodSet{1});  // `until` is exclusive
  EXPECT_EQ(run(timetable, at(seconds{100}) - Duration{1}), PodSet{1});
  EXPECT_EQ(run(timetable, at(seconds{100})), PodSet{1});  // slot 3, odd
  EXPECT_EQ(run(timetable, at(seconds{120})), PodSet{0});  // slot 4
  // 400 years on, slot 420,768,000 is even.
  EXPECT_EQ(run(timetable, at(seconds{12623040000})), PodSet{0});
}

// Division in C++ rounds toward zero; the grid must round down.
TEST(RunAt, UsesTheGridBeforeTheEpochToo) {
  const Timetable timetable{.slice = seconds{1}, .pods_count = 3, .cycle = {{0}, {1}, {2}}};
  // Slot -1 is the last of a cycle of three, slot -3 its first.
  EXPECT_EQ(run(timetable, at(Duration{-1})), PodSet{2});
  EXPECT_EQ(run(timetable, at(seconds{-1})), PodSet{2});
  EXPECT_EQ(run(timetable, at(seconds{-1} - Duration{1})), PodSet{1});
  EXPECT_EQ(run(timetable, at(seconds{-3})), PodSet{0});
}

// An agent sleeps until next_change(). If it were the next boundary instead, it would wake at each
// slice of a node on which nothing takes turns.
TEST(NextChange, SkipsBoundariesWhereNobodyIsSwitched) {
  const Timetable timetable = two_gangs();
  // No pod runs until 70, then pod 1. From 120 on every boundary switches.
  EXPECT_EQ(next_change(timetable, at(seconds{0})), at(seconds{70}));
  // At 100 s plan gives way to slot 3, which runs the same pod: the next switch is at 120 s.
  EXPECT_EQ(next_change(timetable, at(seconds{70})), at(seconds{120}));
  EXPECT_EQ(next_change(timetable, at(seconds{120})), at(seconds{150}));
}

// A cycle of equal slots has boundaries and no changes, and the end of the plan is the last change.
TEST(NextChange, IsNothingWhenTheCycleIsUniform) {
  const Timetable timetable{.slice = seconds{1}, .pods_count = 1, .cycle = {{0}, {0}, {0}}};
  EXPECT_EQ(next_change(timetable, at(seconds{5})), std::nullopt);
  const Timetable one{.slice = seconds{1},
                      .pods_count = 1,
                      .plan = {{.until = at(milliseconds{2500}), .run = {}}},
                      .cycle = {{0}}};
  EXPECT_EQ(next_change(one, at(seconds{1})), at(milliseconds{2500}));
  EXPECT_EQ(next_change(one, at(milliseconds{2500})), std::nullopt);
}

// 31,557,600,000 s are 1,051,920,000 slots of 30 s, an even number: each pod runs half of them.
TEST(RunTime, IsExactOverAThousandYears) {
  const Timetable timetable = two_gangs();
  const Duration thousand_years = seconds{31557600000};
  // From 120 s on the two take turns, 30 s each; the length is an even number of slots.
  EXPECT_EQ(run_time(timetable, 0, at(seconds{120}), at(seconds{120}) + thousand_years),
            thousand_years / 2);
  // Pod 1: 70 to 120 (the plan's second entry, and the rest of slot 3), then 150 to 160 of slot 5.
  EXPECT_EQ(run_time(timetable, 1, at(seconds{60}), at(seconds{160})), seconds{50 + 10});
}

// No work at all is done at once, even by a pod that never runs.
TEST(WhenHasRun, NeverEndsWhatIsInNoSlot) {
  Timetable table;
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
    PodSet set;
    for (std::uint16_t pod = 0; pod < 3; ++pod) {
      if (prng.below(2) == 0) set.push_back(pod);
    }
    return set;
  };
  for (int round = 0; round < 3'000; ++round) {
    Timetable table;
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
    ASSERT_EQ(run_time(table, 1, from, *end), work) << "seed " << kSeed << " round " << round;
    ASSERT_LT(run_time(table, 1, from, *end - base::Duration{1}), work)
        << "seed " << kSeed << " round " << round;
  }
}

// A table that breaks one rule, with the words by which the message must name it.
struct BadCase {
  std::string name;
  Timetable timetable;
  std::string words;  // that the message contains
};

// At least one table for each rule of validate(). Where the rule is a bound, the table is just
// beyond it: a slice of 99 ms, 65 slots, 129 entries.
TEST(Validate, NamesWhatIsWrong) {
  const std::vector<BadCase> cases = {
      {"slice of 0", {.slice = Duration{0}, .cycle = {{}}}, "slice: 0 us"},
      {"slice too short", {.slice = milliseconds{99}, .cycle = {{}}}, "slice"},
      {"slice too long", {.slice = seconds{65534}, .cycle = {{}}}, "slice"},
      {"empty cycle", {.pods_count = 1}, "cycle: empty"},
      {"long cycle", {.cycle = std::vector<PodSet>(65)}, "65 slots"},
      {"many pods", {.pods_count = 10000, .cycle = {{}}}, "10000 listed"},
      {"index", {.pods_count = 1, .cycle = {{0}, {1}}}, "cycle[1]: pod index 1"},
      {"order", {.pods_count = 3, .cycle = {{2, 0}}}, "do not ascend: 2 before 0"},
      {"repetition", {.pods_count = 3, .cycle = {{1, 1}}}, "do not ascend"},
      {"plan index",
       {.pods_count = 1, .plan = {{.until = at(seconds{1}), .run = {7}}}, .cycle = {{}}},
       "plan[0]: pod index 7"},
      {"plan order",
       {.pods_count = 1,
        .plan = {{.until = at(seconds{2})}, {.until = at(seconds{2})}},
        .cycle = {{}}},
       "plan[1]: until"},
      {"plan beyond time",
       {.pods_count = 1, .plan = {{.until = base::kNever}}, .cycle = {{}}},
       "out of range"},
      {"plan without pods", {.plan = {{.until = at(seconds{1})}}, .cycle = {{}}}, "no pods"},
      {"long plan", {.pods_count = 1, .plan = std::vector<PlanEntry>(129), .cycle = {{}}}, "129"},
  };
  for (const BadCase& bad : cases) {
    const base::Status status = validate(bad.timetable);
    ASSERT_FALSE(status.ok()) << bad.name;
    EXPECT_EQ(status.error().code, base::Code::kInvalidArgument) << bad.name;
    EXPECT_NE(status.error().message.find(bad.words), std::string::npos)
        << bad.name << ": " << status.error().message;
  }
  EXPECT_TRUE(validate({.cycle = {{}}}).ok());
  EXPECT_TRUE(validate(two_gangs()).ok());
}

// Method of the property test: times are multiples of 50 ms, so a model that looks at every 50 ms
// step sees every change, and sums run time step by step.
constexpr Duration kStep = milliseconds{50};

PodSet random_set(base::Prng& prng, std::size_t pods_count) {
  PodSet set;
  for (std::uint16_t pod = 0; pod < pods_count; ++pod) {
    if (prng.below(2) == 0) set.push_back(pod);
  }
  return set;
}

// Small on purpose: up to 4 entries that begin before or after the epoch, up to 6 slots of 2 to 6
// steps. So the 150 steps of a round cross every seam, and the epoch.
Timetable random_timetable(base::Prng& prng) {
  Timetable timetable{.slice = kStep * static_cast<std::int64_t>(2 + prng.below(5)),
                      .pods_count = 1 + prng.below(3)};
  Instant until = at(kStep * (static_cast<std::int64_t>(prng.below(40)) - 20));
  for (std::uint64_t i = prng.below(5); i > 0; --i) {
    timetable.plan.push_back({.until = until, .run = random_set(prng, timetable.pods_count)});
    until += kStep * static_cast<std::int64_t>(1 + prng.below(9));
  }
  for (std::uint64_t i = 1 + prng.below(6); i > 0; --i) {
    timetable.cycle.push_back(random_set(prng, timetable.pods_count));
  }
  return timetable;
}

// run(t) read off the definition in architecture.md 2, with no search and no division.
PodSet model_run(const Timetable& timetable, Instant t) {
  for (const PlanEntry& entry : timetable.plan) {
    if (t < entry.until) return entry.run;
  }
  // From a slot boundary far before every t of the test, whose slot number is a multiple of the
  // cycle's length, walk one slot at a time.
  const auto length = static_cast<std::int64_t>(timetable.cycle.size());
  Instant begin = at(-timetable.slice * length * 100);
  for (std::size_t slot = 0;; ++slot, begin += timetable.slice) {
    if (t < begin + timetable.slice) return timetable.cycle[slot % timetable.cycle.size()];
  }
}

// Goal: the four functions agree with the definition at every instant, and not only with each
// other. Method: the model above. next_change() is also asked one microsecond after each step:
// within a slot its answer must stay the same.
TEST(Property, AgreesWithAModelThatStepsThroughTime) {
  constexpr std::uint64_t kSeed = 20260101;
  base::Prng prng{kSeed};
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    const Timetable timetable = random_timetable(prng);
    ASSERT_TRUE(validate(timetable).ok());
    const Instant from = at(kStep * -30);
    const Instant to = at(kStep * 120);
    const auto pod = static_cast<std::uint16_t>(prng.below(timetable.pods_count));
    const Instant since = from + kStep * static_cast<std::int64_t>(prng.below(60));
    Duration ran{0};
    for (Instant t = from; t < to; t += kStep) {
      const PodSet want = model_run(timetable, t);
      ASSERT_EQ(run(timetable, t), want);
      ASSERT_EQ(runs_at(timetable, pod, t), std::count(want.begin(), want.end(), pod) == 1);
      if (t >= since) {
        ASSERT_EQ(run_time(timetable, pod, since, t), ran);
        if (runs_at(timetable, pod, t)) ran += kStep;
      }
      // The model's next change: within one plan and one round, or never.
      std::optional<Instant> change;
      const Instant horizon = std::max(t, at(kStep * 60)) + timetable.slice * 7;
      for (Instant later = t + kStep; later <= horizon && !change; later += kStep) {
        if (model_run(timetable, later) != want) change = later;
      }
      ASSERT_EQ(next_change(timetable, t), change);
      ASSERT_EQ(next_change(timetable, t + Duration{1}), change);
    }
  }
}

// Makes the same table as that of a component, which is what changed_pods() compares.
Timeline widened(const Timetable& table) {
  const auto wide = [](const PodSet& set) { return Timeline::PodSet{set.begin(), set.end()}; };
  Timeline timeline{.slice = table.slice, .pods_count = table.pods_count};
  for (const PlanEntry& entry : table.plan) {
    timeline.plan.push_back({entry.until, wide(entry.run)});
  }
  for (const PodSet& run : table.cycle) timeline.cycle.push_back(wide(run));
  return timeline;
}

std::vector<bool> changed(const Timetable& before, const Timetable& now,
                          const std::vector<std::uint32_t>& pods, Instant from) {
  return changed_pods(widened(before), widened(now), pods, from);
}

// Goal: same_from and changed_pods look at enough instants, and at no others. Method: pairs of
// tables that are often equal from some instant on, compared with a model that steps through time
// until both have repeated.
TEST(Property, ComparesTwoTimetablesAsAModelDoes) {
  constexpr std::uint64_t kSeed = 20260302;
  base::Prng prng{kSeed};
  int same_count = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    const Timetable a = random_timetable(prng);
    Timetable b = random_timetable(prng);
    b.slice = a.slice;
    b.pods_count = a.pods_count;
    // Equal pairs by construction: the same cycle, and one that is written twice, which is the same
    // turns in another form.
    if (prng.below(2) == 0) b.cycle = a.cycle;
    if (prng.below(3) == 0) b.cycle.insert(b.cycle.end(), b.cycle.begin(), b.cycle.end());
    for (PlanEntry& entry : b.plan)
      std::erase_if(entry.run, [&](auto pod) { return pod >= b.pods_count; });
    for (PodSet& run : b.cycle) std::erase_if(run, [&](auto pod) { return pod >= b.pods_count; });
    ASSERT_TRUE(validate(b).ok());
    const Instant from = at(kStep * (static_cast<std::int64_t>(prng.below(100)) - 30));
    std::vector<bool> want(a.pods_count, false);
    // Plans end before step 70; the cycles have at most 6 and 12 slots of at most 6 steps.
    for (Instant t = from; t < at(kStep * (70 + 72 * 12)); t += kStep) {
      for (std::uint16_t pod = 0; pod < a.pods_count; ++pod) {
        if (runs_at(a, pod, t) != runs_at(b, pod, t)) want[pod] = true;
      }
    }
    std::vector<std::uint16_t> pods(a.pods_count);
    for (std::uint16_t pod = 0; pod < a.pods_count; ++pod) pods[pod] = pod;
    ASSERT_EQ(changed(a, b, {pods.begin(), pods.end()}, from), want);
    const bool same = std::count(want.begin(), want.end(), true) == 0;
    ASSERT_EQ(same_from(a, b, pods, from), same);
    same_count += same ? 1 : 0;
  }
  // Without enough equal pairs the test would only show that differences are found.
  EXPECT_GT(same_count, 40);
}

// Pods are indexes: the same job may be another pod in the other table, or in none.
TEST(Comparison, GoesByJobsAndNotByPods) {
  const Timetable a{.slice = seconds{1}, .pods_count = 2, .cycle = {{0}, {1}}};
  const Timetable swapped{.slice = seconds{1}, .pods_count = 2, .cycle = {{1}, {0}}};
  // Pod 0 of `swapped` is the job that is pod 1 of `a`: both run it in the odd slots.
  EXPECT_TRUE(same_from(a, swapped, std::vector<std::uint16_t>{1, 0}, at(seconds{0})));
  EXPECT_FALSE(same_from(a, swapped, std::vector<std::uint16_t>{0, 1}, at(seconds{0})));
  // Pod 0 is gone, pod 1 is pod 0 now, and a new one has come.
  const Timetable later{.slice = seconds{1}, .pods_count = 2, .cycle = {{1}, {0}}};
  EXPECT_EQ(changed(a, later, {kNoPod, 0}, at(seconds{0})), (std::vector<bool>{false, true}));
}

// A component may have more jobs than a node has pods.
TEST(Comparison, NumbersMoreJobsThanANodeHasPods) {
  const std::uint32_t last = 70'000;
  const Timeline line{.slice = seconds{1}, .pods_count = last + 1, .cycle = {{last}, {4464}}};
  EXPECT_TRUE(runs_at(line, last, at(seconds{0})));
  EXPECT_FALSE(runs_at(line, last % 65'536, at(seconds{0})));
}

// Both tables run the pod always, so only the slice differs: agents turn by it and need it.
TEST(Comparison, TakesEveryJobForChangedWhenTheSliceIsAnother) {
  const Timetable a{.slice = seconds{1}, .pods_count = 1, .cycle = {{0}}};
  const Timetable b{.slice = seconds{2}, .pods_count = 1, .cycle = {{0}}};
  const std::vector<std::uint16_t> pods{0};
  EXPECT_FALSE(same_from(a, b, pods, at(seconds{0})));
  EXPECT_EQ(changed(a, b, {0}, at(seconds{0})), std::vector<bool>{true});
}

}  // namespace
}  // namespace timetable
