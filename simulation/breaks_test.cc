// The checkers find what they are there for: each rule that is broken on purpose is found within
// 2,000 rounds, by a checker that looks at it (docs/design/faults.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "simulation/campaign.h"
#include "simulation/plan_text.h"

namespace simulation {
namespace {

constexpr std::int64_t kRoundsMax = 2'000;
// The number of rounds whose findings the search looks at together.
constexpr std::int64_t kRoundsAtOnce = 50;

using Checkers = std::vector<std::string_view>;

// Returns the checkers that watch over what specs ask, and what operators and agents say.
Checkers checkers_of_words(Break which) {
  if (which == Break::kTimeoutNotSeen) return {"start timeout"};
  if (which == Break::kSelectorNotSeen) return {"placement"};
  if (which == Break::kDependencyNotSeen) return {"dependency"};
  if (which == Break::kDevicesNotSeen) return {"devices"};
  if (which == Break::kHoldNotSeen) return {"held"};
  if (which == Break::kTestOnlyNotSeen) return {"forecast"};
  if (which == Break::kThrottleNotSeen) return {"throttle"};
  if (which == Break::kOutcomesNotSeen) return {"array", "started twice"};
  if (which == Break::kExitCodeNotSeen) return {"array at the end"};
  if (which == Break::kTaskHoldNotSeen) return {"task asked"};
  if (which == Break::kTaskCancelNotSeen) return {"task asked"};
  if (which == Break::kTableSwallowed) return {"overlap", "stored timetable"};
  if (which == Break::kPodNewsLost) return {"known pod"};
  if (which == Break::kOverlapForgotten) return {"overlap counted"};
  if (which == Break::kTurnsShifted) return {"gang agrees"};
  if (which == Break::kSaidAgain) return {"quiet"};
  if (which == Break::kNeverRests) return {"comes to rest"};
  if (which == Break::kChargesForgotten) return {"usage"};
  return {};
}

// Returns the checkers that watch over the rule.
Checkers checkers_of(Break which) {
  switch (which) {
    case Break::kStartNotStored:
    case Break::kProxyBelieved:
      return {"commit"};
    case Break::kTableNotStored:
      return {"table commit"};
    case Break::kEndNotStored:
      return {"batch verdict", "started twice"};
    case Break::kGoneNotListed:
      return {"all end", "obeys"};
    case Break::kOutcomeLost:
      return {"all end"};
    case Break::kNeverConfirmed:
      return {"obeys"};
    case Break::kEndingNotStored:
      return {"teardown"};
    case Break::kPlaceNotStored:
      return {"members"};
    case Break::kFrozenUnsettled:
    case Break::kJournalAfterFreeze:
      return {"frozen"};
    case Break::kNoBarrier:
      return {"barrier"};
    case Break::kStaleObeyed:
      return {"goes back"};
    case Break::kDeletedStaysFrozen:
      return {"deleted"};
    case Break::kNeverFailsOpen:
      return {"fail open"};
    case Break::kWriteSwallowed:
      return {"stored"};
    case Break::kDevicesDoubled:
      return {"devices"};
    case Break::kProbeNotSeen:
      return {"never frozen"};
    case Break::kClockBelieved:
      return {"verdict in time"};
    case Break::kTimeLost:
      return {"charged"};
    case Break::kUncordonNotSeen:
      return {"idle node"};
    case Break::kDebugExempts:
    case Break::kLabelExempts:
    case Break::kDeadlineExempts:
    case Break::kDebugEndless:
      return {"overlap"};
    case Break::kNone:
    case Break::kTimeoutNotSeen:
    case Break::kSelectorNotSeen:
    case Break::kDependencyNotSeen:
    case Break::kDevicesNotSeen:
    case Break::kHoldNotSeen:
    case Break::kTestOnlyNotSeen:
    case Break::kThrottleNotSeen:
    case Break::kOutcomesNotSeen:
    case Break::kExitCodeNotSeen:
    case Break::kTaskHoldNotSeen:
    case Break::kTaskCancelNotSeen:
    case Break::kTableSwallowed:
    case Break::kPodNewsLost:
    case Break::kOverlapForgotten:
    case Break::kTurnsShifted:
    case Break::kSaidAgain:
    case Break::kNeverRests:
    case Break::kChargesForgotten:
      return checkers_of_words(which);
  }
  return {};
}

// Returns the first of these findings by one of the checkers that watch over the rule.
std::optional<FoundIn> fitting(const std::vector<FoundIn>& findings, const Checkers& checkers) {
  for (const FoundIn& found : findings) {
    if (std::find(checkers.begin(), checkers.end(), found.finding.checker) != checkers.end()) {
      return found;
    }
    std::printf("seed %llu: found by another checker: %s: %s\n",
                static_cast<unsigned long long>(found.seed), found.finding.checker.c_str(),
                found.finding.text.c_str());
  }
  return std::nullopt;
}

// Returns what is found in the plan that is kept, if there is one: some breaks show in one of
// hundreds of rounds only.
std::vector<FoundIn> found_in_plan(const std::string& name, Break which) {
  std::ifstream file{KUBEGANG_SOURCE_DIR "/simulation/testdata/breaks/" + name + ".plan"};
  if (!file) return {};
  const auto plan = parse_plan(std::string{std::istreambuf_iterator<char>{file}, {}});
  EXPECT_TRUE(plan.ok()) << name << ": " << plan.error().message;
  if (!plan.ok()) return {};
  Tally tally;
  const auto finding = run_round(*plan, {which}, tally, false);
  return finding ? std::vector<FoundIn>{{plan->seed, *finding}} : std::vector<FoundIn>{};
}

class BreaksTest : public testing::TestWithParam<BreakInfo> {};

// Consequences of a plan change with the code: if the one that is kept no longer shows anything,
// all rounds are played, and the printed seed gives the next one to keep (kubegang-simulation
// --break NAME --replay SEED --save FILE).
TEST_P(BreaksTest, IsFound) {
  const Breaks breaks{GetParam().which};
  const Checkers checkers = checkers_of(breaks.active);
  std::optional<FoundIn> found =
      fitting(found_in_plan(std::string{GetParam().name}, breaks.active), checkers);
  if (!found) {
    std::printf("not found in a plan that is kept\n");
    const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (std::int64_t played = 0; !found && played < kRoundsMax; played += kRoundsAtOnce) {
      found = fitting(run_campaign({.first_seed = static_cast<std::uint64_t>(played + 1),
                                    .rounds = kRoundsAtOnce,
                                    .threads = threads,
                                    .breaks = breaks,
                                    .findings_max = kRoundsAtOnce})
                          .findings,
                      checkers);
    }
  }
  ASSERT_TRUE(found.has_value());
  std::printf("seed %llu: %s: %s\n", static_cast<unsigned long long>(found->seed),
              found->finding.checker.c_str(), found->finding.text.c_str());
}

// Plays a job that ends before enough of its time is lost for `charged`.
TEST(Breaks, TimeThatIsLostIsSeenInTheTimesOfAShortJob) {
  EXPECT_TRUE(fitting(found_in_plan("time-lost-of-a-short-job", Break::kTimeLost), {"time"}));
}

INSTANTIATE_TEST_SUITE_P(All, BreaksTest, testing::ValuesIn(kBreaks), [](const auto& one) {
  std::string name{one.param.name};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace simulation
