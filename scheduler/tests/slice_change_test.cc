// Changes of the slice length while jobs take turns: what is published fits into a timetable, and
// is what happens.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

Configuration slices_of(const std::vector<NodeSpec>& nodes, double slice, double lead) {
  Configuration c = gang_linear({partition("p", nodes, OverSubscribe::kForce, 8)});
  c.cluster.time_slice = seconds(slice);
  c.cluster.timetable_lead = seconds(lead);
  return c;
}

void change(Driver& driver, const Configuration& configuration) {
  driver.step(driver.now(), Configure{std::make_shared<const Configuration>(configuration)});
}

// Expects that each job runs until `end` at the times that its nodes' timetables say now.
void expect_as_published(Driver& driver, int jobs, double end, double step) {
  std::vector<std::vector<Driver::Says>> said(static_cast<std::size_t>(jobs) + 1);
  const base::Instant from = driver.now();
  const auto instant = [&](std::size_t i) {
    return from + seconds(step) * static_cast<std::int64_t>(i) + seconds(step / 2);
  };
  for (std::size_t i = 0; instant(i) < at(end); ++i) {
    for (int id = 1; id <= jobs; ++id) {
      said[static_cast<std::size_t>(id)].push_back(driver.published_says(JobId{id}, instant(i)));
    }
  }
  for (std::size_t i = 0; instant(i) < at(end); ++i) {
    driver.run_until(instant(i));
    for (int id = 1; id <= jobs; ++id) {
      const bool runs = driver.view(id).state == JobState::kRunning;
      ASSERT_EQ(said[static_cast<std::size_t>(id)][i],
                runs ? Driver::Says::kRuns : Driver::Says::kFrozen)
          << "job " << id << " at sample " << i;
    }
  }
}

// architecture.md 2: slots of the old length are written out up to the change, which is hundreds of
// them away if the new slice is that much longer; a timetable has room for 128.
TEST(SliceChange, ToALongSliceFitsIntoATimetable) {
  struct Case {
    double from, to, lead;
  };
  for (const Case& c : {Case{0.1, 30, 3}, Case{0.2, 30, 3}, Case{0.1, 30, 60}, Case{1, 30, 60},
                        Case{0.1, 600, 600}, Case{30, 0.1, 3}, Case{30, 0.1, 600}}) {
    SCOPED_TRACE(std::to_string(c.from) + " s to " + std::to_string(c.to) + " s with lead " +
                 std::to_string(c.lead) + " s");
    const std::vector<NodeSpec> two = nodes("n", 1, 2);
    Driver driver{slices_of(two, c.from, c.lead), two};
    for (int id = 1; id <= 2; ++id) driver.step(at(0), Submit{job(id, 2)});
    // Early in a slot of 30 s, so that the change is far away.
    driver.run_until(at(2'401));
    change(driver, slices_of(two, c.to, c.lead));
    driver.run_until(at(2'401));
    ASSERT_EQ(driver.published().size(), 2U);
    const timetable::Timetable& table = driver.published().begin()->second.timetable;
    EXPECT_LE(table.plan.size(), timetable::kPlanEntriesMax);
    EXPECT_EQ(table.slice, seconds(c.to));
    // No job waits for longer than about a new slice.
    ASSERT_FALSE(table.plan.empty());
    EXPECT_LE(table.plan.back().until, at(2'401) + 33 * seconds(c.from) + seconds(c.to));
    expect_as_published(driver, 2, 2'460, 0.05);
  }
}

// A join that waits for a boundary of a long slice comes with the change to a short one: until then
// hundreds of short slots would pass.
TEST(SliceChange, ToAShortSliceTakesWaitingJoinsAlong) {
  const std::vector<NodeSpec> one = nodes("n", 1, 1);
  Driver driver{slices_of(one, 30, 12), one};
  driver.step(at(0), Submit{job(1, 1)});
  driver.run_until(at(601));
  driver.step(at(601), Submit{job(2, 1)});  // joins at 630
  driver.run_until(at(602));
  driver.step(at(602), Submit{job(3, 1)});
  driver.run_until(at(602));
  change(driver, slices_of(one, 0.1, 12));
  driver.run_until(at(602));
  expect_as_published(driver, 3, 612, 0.05);
  EXPECT_GT(driver.view(3).run_time, seconds(1));
}

// Goal: whatever is changed when, plans are valid (NodePlans checks each) and happen as published.
TEST(SliceChange, AtRandomInstantsIsAsPublished) {
  constexpr std::uint64_t kSeed = 20261128;
  base::Prng prng{kSeed};
  const auto any = [&](const auto& of) { return of[prng.below(of.size())]; };
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::vector<NodeSpec> three = nodes("n", 1, 3);
    const double lead = any(std::array{0.0, 3.0, 20.0, 600.0});
    Driver driver{slices_of(three, any(std::array{0.1, 1.0, 30.0}), lead), three};
    int jobs = 0;
    double now = 0;
    for (int event = 0; event < 12; ++event) {
      now += any(std::array{0.0, 0.35, 2.0, 14.0});
      driver.run_until(at(now));
      if (jobs < 6 && prng.below(2) == 0) {
        driver.step(at(now), Submit{job(++jobs, 1 + static_cast<int>(prng.below(2)))});
      } else {
        change(driver, slices_of(three, any(std::array{0.1, 0.2, 0.7, 5.0, 30.0}), lead));
      }
      driver.run_until(at(now));
      ASSERT_EQ(driver.scheduler().check_invariants(), "");
    }
    expect_as_published(driver, jobs, now + 20, 0.05);
  }
}

}  // namespace
}  // namespace sched::testing
