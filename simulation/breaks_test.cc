// The checkers find what they are there for: each rule that is broken on purpose is found within
// 2,000 rounds, by a checker that looks at it (docs/design/faults.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "simulation/campaign.h"

namespace simulation {
namespace {

constexpr std::int64_t kRoundsMax = 2'000;

// Returns the round in which a break was found last. That round is played first, because some
// breaks show in one of hundreds of rounds only. Consequences of a seed change with the code: if
// this round finds nothing any more, all rounds are played, and the printed line says which number
// to write here.
std::uint64_t last_found(Break which) {
  switch (which) {
    case Break::kNone:
    case Break::kStartNotStored:
    case Break::kEndNotStored:
    case Break::kTableNotStored:
      return 1;
    case Break::kGoneNotListed:
    case Break::kOutcomeLost:
      return 2;
    case Break::kEndingNotStored:
    case Break::kPlaceNotStored:
      return 3;
    case Break::kFrozenUnsettled:
      return 4;
    case Break::kNoBarrier:
      return 15;
    case Break::kStaleObeyed:
    case Break::kDeletedStaysFrozen:
      return 108;
    case Break::kNeverConfirmed:
      return 201;
    case Break::kNeverFailsOpen:
      return 209;
    case Break::kJournalAfterFreeze:
      return 325;
    case Break::kChargesForgotten:
      return 358;
  }
  return 1;
}

class BreaksTest : public testing::TestWithParam<BreakInfo> {};

TEST_P(BreaksTest, IsFound) {
  const std::uint64_t first = last_found(GetParam().which);
  ASSERT_LE(first, static_cast<std::uint64_t>(kRoundsMax));  // one of the rounds of the search
  const Breaks breaks{GetParam().which};
  CampaignResult result = run_campaign({.first_seed = first, .rounds = 1, .breaks = breaks});
  if (result.findings.empty()) {
    std::printf("not found with seed %llu any more\n", static_cast<unsigned long long>(first));
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    result = run_campaign({.rounds = kRoundsMax, .threads = threads, .breaks = breaks});
  }
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
