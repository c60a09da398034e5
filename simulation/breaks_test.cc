// The checkers find what they are there for: each rule that is broken on purpose is found within
// 2,000 rounds, by a checker that looks at it (docs/design/faults.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "simulation/campaign.h"

namespace simulation {
namespace {

constexpr std::int64_t kRoundsMax = 2'000;

class BreaksTest : public testing::TestWithParam<BreakInfo> {};

TEST_P(BreaksTest, IsFound) {
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const CampaignResult result =
      run_campaign({.rounds = kRoundsMax, .threads = threads, .breaks = {GetParam().which}});
  ASSERT_FALSE(result.findings.empty());
  const FoundIn& found = result.findings.front();
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(found.seed),
              found.finding.checker.c_str(), found.finding.text.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, BreaksTest, testing::ValuesIn(kBreaks), [](const auto& one) {
  std::string name{one.param.name};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace simulation
