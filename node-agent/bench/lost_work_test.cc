#include "node-agent/bench/lost_work.h"

#include <gtest/gtest.h>

namespace agent::bench {
namespace {

// Times are in nanoseconds. Ten turns of 100 ms; 25 ms after a boundary its switch is over.
constexpr std::int64_t kMs = 1'000'000;
constexpr Turns kTurns{.from = 0, .slice = 100 * kMs, .count = 10, .over_after = 25 * kMs};

// Makes a CPU that is busy from a slice before the first boundary to the end, but for the gaps.
std::vector<Run> busy_but_for(const std::vector<Run>& gaps) {
  std::vector<Run> runs;
  std::int64_t at = -kTurns.slice;
  for (const Run& gap : gaps) {
    runs.push_back({at, gap.begin});
    at = gap.end;
  }
  runs.push_back({at, kTurns.slice * kTurns.count});
  return runs;
}

// Returns a gap of `length` in each turn, `after` its boundary.
std::vector<Run> gaps_in_turns(std::int64_t after, std::int64_t length) {
  std::vector<Run> gaps;
  for (int i = 0; i < kTurns.count; ++i) {
    const std::int64_t begin = i * kTurns.slice + after;
    gaps.push_back({begin, begin + length});
  }
  return gaps;
}

// Runs come from several threads, in any order, and may overlap: counted one by one, the same time
// would count twice.
TEST(MergeRuns, JoinsWhatTouchesAndKeepsWhatDoesNot) {
  const std::vector<bench::Run> merged = merge_runs({{30, 40}, {0, 10}, {5, 20}, {20, 25}});
  ASSERT_EQ(merged.size(), 2U);
  EXPECT_EQ(merged[0].begin, 0);
  EXPECT_EQ(merged[0].end, 25);
  EXPECT_EQ(merged[1].begin, 30);
}

// Overlap of two gangs is the number that must be zero. The end of a run is not part of it: 10 to
// 20 touches 0 to 10, and does not overlap it.
TEST(OverlapNanos, CountsWhereBothRanInTheSpan) {
  EXPECT_EQ(overlap_nanos({{0, 10}, {20, 30}}, {{5, 25}}, 0, 100), 10);
  EXPECT_EQ(overlap_nanos({{0, 10}, {20, 30}}, {{5, 25}}, 8, 22), 4);
  EXPECT_EQ(overlap_nanos({{0, 10}}, {{10, 20}}, 0, 100), 0);
}

// The four tests below are the cases that the figure must tell apart: nothing lost, lost at each
// boundary, lost all the time for another reason, and lost once by chance.
TEST(LostWork, WorkWithoutAGapLosesNothing) {
  const LostWork lost = lost_work({busy_but_for({}), busy_but_for({})}, kTurns);
  EXPECT_DOUBLE_EQ(lost.percent, 0);
  EXPECT_DOUBLE_EQ(lost.noise_percent, 0);
}

TEST(LostWork, AGapAtEveryBoundaryIsLostAndNoNoise) {
  // 2 ms of 100 ms on one CPU of two.
  const LostWork lost =
      lost_work({busy_but_for(gaps_in_turns(-kMs / 2, 2 * kMs)), busy_but_for({})}, kTurns);
  EXPECT_NEAR(lost.percent, 1, 1e-9);
  EXPECT_NEAR(lost.noise_percent, 0, 1e-9);
}

// Another program takes half of the CPU, at boundaries and between them: not the switches' doing,
// so it is the measure with which the time at a boundary is compared.
TEST(LostWork, WhatIsStolenAllTheTimeIsNotLost) {
  std::vector<bench::Run> gaps;  // 1 ms of every 2 ms
  for (std::int64_t at = -kTurns.slice; at < kTurns.slice * kTurns.count; at += 2 * kMs) {
    gaps.push_back({at, at + kMs});
  }
  EXPECT_NEAR(lost_work({busy_but_for(gaps)}, kTurns).percent, 0, 1e-9);
}

TEST(LostWork, OneTurnThatIsUnlikeTheOthersShowsAsNoise) {
  const LostWork lost = lost_work({busy_but_for({{0, 10 * kMs}})}, kTurns);
  EXPECT_NEAR(lost.percent, 1, 1e-9);        // 10 ms of a second
  EXPECT_NEAR(lost.noise_percent, 1, 1e-9);  // and as much of that is chance
}

}  // namespace
}  // namespace agent::bench
