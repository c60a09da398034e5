#include "e2e/probe/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"

namespace probe {
namespace {

using base::Duration;
using base::Instant;
using testing::ElementsAre;
using testing::IsEmpty;

Instant ms(std::int64_t millis) {
  return Instant{std::chrono::milliseconds{millis}};
}
Duration dms(std::int64_t millis) {
  return std::chrono::milliseconds{millis};
}
// Returns one piece of work per millisecond, as a probe does.
Run run(std::int64_t from, std::int64_t to) {
  return {ms(from), ms(to), to - from};
}

// Two gangs on nodes n1 and n2 with a slice of 100 ms. a runs alone from 0, b starts at 2,000 and
// settles until 4,000; from 4,200 on b and a take turns, b first. Every turn lasts its slot but the
// last millisecond; b's n2 is `skew` ms late each time.
Measurement turns(std::int64_t skew = 0, std::int64_t slots = 20) {
  std::map<std::string, std::vector<Run>> a;
  std::map<std::string, std::vector<Run>> b;
  for (const std::string node : {"n1", "n2"}) {
    a[node].push_back(run(0, 4199));
    b[node].push_back(run(2000, 4000));
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const std::int64_t begin = 4200 + slot * 100;
      const std::int64_t late = slot % 2 == 0 && node == "n2" ? skew : 0;
      (slot % 2 == 0 ? b : a)[node].push_back(run(begin + late, begin + 99));
    }
  }
  return {.slice = dms(100),
          .gangs = {{"a", a}, {"b", b}},
          .until = ms(4200 + slots * 100 + 50),
          .unsliced = Interval{ms(500), ms(2000)}};
}

// 21 slots: the window has 20 of them, from the first swap at 4,200. Each of the two nodes has a
// switch at the begin of each slot: from a's long first turn to b, and 20 more.
TEST(Analysis, MeasuresFromTheFirstSwapOnOverAnEvenNumberOfSlots) {
  const Findings findings = analyse(turns(0, 21));
  ASSERT_TRUE(findings.window.has_value());
  EXPECT_EQ(*findings.window, (Interval{ms(4200), ms(4200 + 2000)}));
  EXPECT_EQ(findings.slices, 20);
  EXPECT_EQ(findings.switches, 2 * 21);
}

// 20 slots of 100 ms, ten for each gang, each of 99 ms.
TEST(Analysis, GivesBothGangsTheirShare) {
  const Findings findings = analyse(turns());
  ASSERT_EQ(findings.jobs.size(), 2U);
  for (const JobShare& job : findings.jobs) {
    EXPECT_NEAR(job.run_seconds, 0.99, 1e-9) << job.name;  // ten turns of 99 ms
    EXPECT_NEAR(job.suspended_seconds, 1.01, 1e-9) << job.name;
    EXPECT_EQ(job.turns, 10) << job.name;
  }
}

// b settles from 2,000 to 4,000 beside a.
TEST(Analysis, TakesTheOverlapWhileTheNewcomerStartsForSettling) {
  const Findings findings = analyse(turns());
  EXPECT_EQ(findings.settling_overlap, dms(2000));
  EXPECT_EQ(findings.overlap_total, Duration{});
}

TEST(Analysis, FindsAnOverlapOfOneMillisecondOnOneNode) {
  Measurement measurement = turns();
  measurement.gangs[0].nodes["n1"][3].end = ms(4200 + 6 * 100 + 1);  // a's turn ends too late
  const Findings findings = analyse(measurement);
  EXPECT_EQ(findings.overlap_total, dms(1));
  EXPECT_EQ(findings.overlap_max, dms(1));
}

// a runs until 4,230 on n2 while b's first turn begins at 4,200: b has been frozen before, so this
// is not settling.
TEST(Analysis, CountsTheIncumbentThatIsNotFrozenForItsFirstTimeAsOverlap) {
  Measurement measurement = turns();
  measurement.gangs[0].nodes["n2"][0].end = ms(4230);
  EXPECT_EQ(analyse(measurement).overlap_total, dms(30));
}

// Both run side by side from 2,000 to 9,000 and neither is ever frozen: no switch, so no window.
TEST(Analysis, CountsAGangThatIsNeverFrozenAsSettlingForEver) {
  Measurement measurement = turns(0, 0);
  measurement.gangs[0].nodes["n1"] = {run(0, 9000)};
  measurement.gangs[1].nodes["n1"] = {run(2000, 9000)};
  measurement.until = ms(9000);
  const Findings findings = analyse(measurement);
  EXPECT_EQ(findings.settling_overlap, dms(7000));
  EXPECT_FALSE(findings.window.has_value());
}

// A turn ends 1 ms before its slot does. On n2 each turn of b is 7 ms late: there the gap before it
// is 8 ms, and n1 runs 7 ms before n2. a is never late, so the medians are 1 ms and 0.
TEST(Analysis, MeasuresGapsBetweenTheGangsAndSkewBetweenTheNodes) {
  const Findings findings = analyse(turns(7));
  EXPECT_EQ(findings.gap_micros.p50, 1000);
  EXPECT_EQ(findings.gap_micros.p99, 8000);
  EXPECT_EQ(findings.skew_micros.p50, 0);
  EXPECT_EQ(findings.skew_micros.p99, 7000);
}

TEST(Analysis, LosesOnePercentWhenOneMillisecondInAHundredIsIdle) {
  EXPECT_NEAR(analyse(turns()).lost_percent, 1.0, 1e-6);
}

// In turns both do 99 pieces in 100 ms, alone 90.
TEST(Analysis, ComparesWithTheRateOfTheGangAlone) {
  Measurement measurement = turns();
  // Alone it did only nine pieces in ten milliseconds: the machine was busy all the time.
  for (auto& [node, runs] : measurement.gangs[0].nodes) {
    runs[0].progress = runs[0].progress * 9 / 10;
  }
  EXPECT_NEAR(analyse(measurement).lost_percent, 100 * (1 - 0.99 / 0.9), 0.01);
}

TEST(Analysis, DoesNotTakeABusyCpuForAFreeze) {
  Measurement measurement = turns();
  // While b settles, it does not get a CPU for 40 ms.
  auto& settling = measurement.gangs[1].nodes["n1"];
  settling[0] = run(3000, 4000);
  settling.insert(settling.begin(), run(2000, 2960));
  const Findings findings = analyse(measurement);
  EXPECT_EQ(findings.overlap_total, Duration{});
  EXPECT_EQ(findings.settling_overlap, dms(2000));
}

// Everything stands still from 2,500 to 2,700, which looks like the end of a turn. The freezes that
// were seen (4,004 and 4,203) say that none was: b settles from 2,000 to 2,500 and from 2,700 to
// 4,000, which are 1,800 ms.
TEST(Analysis, BelievesTheObservedFreezeWhenTheWholeMachineStoodStill) {
  Measurement measurement = turns();
  for (const std::string node : {"n1", "n2"}) {
    auto& a = measurement.gangs[0].nodes[node];
    auto& b = measurement.gangs[1].nodes[node];
    a[0] = run(2700, 4199);
    a.insert(a.begin(), run(0, 2500));
    b[0] = run(2700, 4000);
    b.insert(b.begin(), run(2000, 2500));
    measurement.gangs[0].touched[node] = ms(4203);
    measurement.gangs[1].touched[node] = ms(4004);
  }
  const Findings findings = analyse(measurement);
  EXPECT_EQ(findings.overlap_total, Duration{});
  EXPECT_EQ(findings.settling_overlap, dms(1800));
  EXPECT_EQ(findings.switches, 40);
  ASSERT_TRUE(findings.window.has_value());
  EXPECT_EQ(findings.window->from, ms(4200));
}

TEST(Analysis, HasNothingToSayAboutNoStamps) {
  const Findings findings = analyse({.slice = dms(100)});
  EXPECT_FALSE(findings.window.has_value());
  EXPECT_THAT(findings.jobs, IsEmpty());
}

// Goal: the merge of two sorted lists misses no piece. Method: random runs on whole milliseconds,
// and a count of the milliseconds in which both ran.
TEST(Overlaps, AgreesWithCountingMilliseconds) {
  base::Prng prng{20260101};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<probe::Run>> gangs(2);
    std::vector<std::vector<bool>> ran(2, std::vector<bool>(200, false));
    for (std::size_t gang = 0; gang < 2; ++gang) {
      for (std::int64_t t = 0; t < 180;) {
        t += static_cast<std::int64_t>(prng.below(20)) + 1;
        const auto length = static_cast<std::int64_t>(prng.below(15)) + 1;
        if (t + length >= 200) break;
        gangs[gang].push_back(run(t, t + length));
        for (std::int64_t i = t; i < t + length; ++i) ran[gang][static_cast<std::size_t>(i)] = true;
        t += length;
      }
    }
    std::int64_t want = 0;
    for (std::size_t i = 0; i < 200; ++i) want += ran[0][i] && ran[1][i] ? 1 : 0;
    Duration got{};
    for (const Interval& piece : overlaps(gangs[0], gangs[1])) got += piece.to - piece.from;
    EXPECT_EQ(got, dms(want));
  }
}

// Nearest rank: the 50th of four values is the second, the 99th the fourth.
TEST(Percentiles, AreValuesThatOccur) {
  EXPECT_EQ(percentiles({}), (Percentiles{0, 0}));
  EXPECT_EQ(percentiles({5}), (Percentiles{5, 5}));
  EXPECT_EQ(percentiles({4, 1, 3, 2}), (Percentiles{2, 4}));
}

TEST(MergeRuns, JoinsThoseThatAreLessThanTheGapApart) {
  EXPECT_THAT(merge_runs({run(0, 10), run(15, 20), run(40, 50)}, dms(20)),
              ElementsAre(probe::Run{ms(0), ms(20), 15}, run(40, 50)));
}

}  // namespace
}  // namespace probe
