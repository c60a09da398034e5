// Some rounds of the campaign in every `make test`; `make campaign` runs the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "simulation/campaign.h"

namespace simulation {
namespace {

std::string text_of(const CampaignResult& result) {
  std::string text;
  for (const FoundIn& found : result.findings) {
    text += "seed " + std::to_string(found.seed) + ": " + found.finding.checker + ": " +
            found.finding.text + "\n  build/bin/kubegang-simulation --replay " +
            std::to_string(found.seed) + "\n";
  }
  return text;
}

CampaignResult campaign(std::int64_t rounds, bool calm) {
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return run_campaign({.rounds = rounds, .threads = threads, .calm = calm});
}

// Users only. If this fails, the scheduler or a checker is wrong by itself; no fault need be
// searched for.
TEST(Simulation, WithoutFaultsNothingIsFound) {
  const CampaignResult result = campaign(30, true);
  EXPECT_TRUE(result.findings.empty()) << text_of(result);
  EXPECT_EQ(result.tally.rounds, 30);
}

TEST(Simulation, TwoHundredRoundsWithFaultsFindNothing) {
  const CampaignResult result = campaign(200, false);
  EXPECT_TRUE(result.findings.empty()) << text_of(result);
  EXPECT_EQ(result.tally.rounds, 200);
  EXPECT_TRUE(blind_checkers(result.tally).empty())
      << "looked at nothing: " << testing::PrintToString(blind_checkers(result.tally));
  // A quarter of the 37 kinds of faults is drawn in each round.
  EXPECT_TRUE(unfelt_faults(result.tally).empty())
      << "never took effect: " << testing::PrintToString(unfelt_faults(result.tally));
}

// Rounds of past campaigns that found a defect of ours. Smaller tests of the same defects stand
// beside the code that was mended.
TEST(Simulation, RoundsThatFoundSomethingFindNothing) {
  for (const std::uint64_t seed : {5034U, 6424U, 7334U, 8175U, 9021U, 720118U, 1125663U}) {
    const CampaignResult result = run_campaign({.first_seed = seed, .rounds = 1});
    EXPECT_TRUE(result.findings.empty()) << text_of(result);
  }
}

// Goal: a replay shows the same round. Method: compare the tallies of two runs, in which every
// fault, every look of a checker and every request is counted.
TEST(Simulation, OneSeedIsOneRound) {
  for (const std::uint64_t seed : {7U, 8U, 9U}) {
    Tally first, second;
    (void)run_round(seed, {}, false, {}, first, false);
    (void)run_round(seed, {}, false, {}, second, false);
    EXPECT_EQ(table_of(first), table_of(second)) << seed;
  }
}

// A finding is reported by its seed alone, so the seed must give the plan. Different seeds must not
// give the same one, or a long campaign would play few rounds many times.
TEST(Plan, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const auto text = [](std::uint64_t seed) {
    std::string all;
    for (const Event& event : plan_of(seed, false).events) all += to_string(event) + "\n";
    return all;
  };
  EXPECT_EQ(text(5), text(5));
  EXPECT_NE(text(5), text(6));
}

}  // namespace
}  // namespace simulation
