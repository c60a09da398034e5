// The checkers find what they are there for: each rule that is broken on purpose is found within
// 2,000 rounds, by a checker that looks at it (docs/design/faults.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "simulation/campaign.h"

namespace simulation {
namespace {

constexpr std::int64_t kRoundsMax = 2'000;
// The search looks at the findings of so many rounds at a time.
constexpr std::int64_t kRoundsAtOnce = 50;

struct Known {
  std::uint64_t seed;                      // of the round in which it was found last
  std::vector<std::string_view> checkers;  // those that watch over the rule
};

// The round of the seed is played first, because some breaks show in one of hundreds of rounds
// only. Consequences of a seed change with the code: if this round finds nothing any more, all
// rounds are played, and the printed line says which number to write here.
Known known(Break which) {
  switch (which) {
    case Break::kNone:
      return {};
    case Break::kStartNotStored:
      return {1, {"commit"}};
    case Break::kTableNotStored:
      return {3, {"table commit"}};
    case Break::kEndNotStored:
      return {1, {"batch verdict", "started twice"}};
    case Break::kGoneNotListed:
      return {5, {"all end", "obeys"}};
    case Break::kOutcomeLost:
      return {20, {"all end"}};
    case Break::kEndingNotStored:
      return {3, {"teardown"}};
    case Break::kPlaceNotStored:
      return {3, {"members"}};
    case Break::kFrozenUnsettled:
      return {15, {"frozen"}};
    case Break::kNoBarrier:
      return {15, {"barrier"}};
    case Break::kStaleObeyed:
      return {15, {"goes back"}};
    case Break::kDeletedStaysFrozen:
      return {44, {"deleted"}};
    case Break::kNeverConfirmed:
      return {23, {"obeys"}};
    case Break::kNeverFailsOpen:
      return {179, {"fail open"}};
    case Break::kJournalAfterFreeze:
      return {116, {"frozen"}};
    case Break::kChargesForgotten:
      return {96, {"usage"}};
  }
  return {};
}

// Returns the first of these findings by one of the checkers that watch over the rule.
std::optional<FoundIn> fitting(const CampaignResult& result, const Known& wanted) {
  for (const FoundIn& found : result.findings) {
    const auto& checkers = wanted.checkers;
    if (std::find(checkers.begin(), checkers.end(), found.finding.checker) != checkers.end()) {
      return found;
    }
    std::printf("seed %llu: found by another checker: %s: %s\n",
                static_cast<unsigned long long>(found.seed), found.finding.checker.c_str(),
                found.finding.text.c_str());
  }
  return std::nullopt;
}

class BreaksTest : public testing::TestWithParam<BreakInfo> {};

TEST_P(BreaksTest, IsFound) {
  const Breaks breaks{GetParam().which};
  const Known wanted = known(breaks.active);
  // One of the rounds of the search.
  ASSERT_TRUE(wanted.seed >= 1 && wanted.seed <= static_cast<std::uint64_t>(kRoundsMax));
  std::optional<FoundIn> found =
      fitting(run_campaign({.first_seed = wanted.seed, .rounds = 1, .breaks = breaks}), wanted);
  if (!found) {
    std::printf("not found with seed %llu any more\n",
                static_cast<unsigned long long>(wanted.seed));
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (std::int64_t played = 0; !found && played < kRoundsMax; played += kRoundsAtOnce) {
      found = fitting(run_campaign({.first_seed = static_cast<std::uint64_t>(played + 1),
                                    .rounds = kRoundsAtOnce,
                                    .threads = threads,
                                    .breaks = breaks,
                                    .findings_max = kRoundsAtOnce}),
                      wanted);
    }
  }
  ASSERT_TRUE(found.has_value());
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(found->seed),
              found->finding.checker.c_str(), found->finding.text.c_str());
}

INSTANTIATE_TEST_SUITE_P(All, BreaksTest, testing::ValuesIn(kBreaks), [](const auto& one) {
  std::string name{one.param.name};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace simulation
