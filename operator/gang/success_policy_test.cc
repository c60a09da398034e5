#include "operator/gang/success_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/gang/gang_observation.h"
#include "translation/success_policy_check.h"

namespace control {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr base::Instant kSeenAt{seconds{1'000'000}};

// A gang, by the seconds since each pod succeeded; -1: it still runs.
struct Gang {
  explicit Gang(const std::vector<int>& ended) {
    for (const int ago : ended) {
      slots.push_back({.pod_index = static_cast<int>(slots.size())});
      SlotPod& pod = pods.emplace_back();
      pod.has_succeeded = ago >= 0;
      if (ago >= 0) pod.last_finished = kSeenAt - seconds{ago};
    }
  }
  // Returns the verdict under this rule alone.
  std::optional<EarlySuccess> under(const kube::SuccessRule& rule) const {
    return early_success({{rule}}, slots, pods, kSeenAt);
  }
  std::vector<PodSlot> slots;
  std::vector<SlotPod> pods;
};

// A failed or running pod that is not named does not matter. Others that have succeeded are
// reported too: pod 3 here.
TEST(SuccessPolicy, OfIndexesAsksForAllOfThem) {
  EXPECT_FALSE(Gang({-1, 5, 5}).under({"0", {}}).has_value());
  EXPECT_FALSE(Gang({5, -1, 9}).under({"0-1", {}}).has_value());
  const auto met = Gang({5, 3, -1, 1}).under({"0-1", {}});
  ASSERT_TRUE(met.has_value());
  EXPECT_EQ(met->at, kSeenAt - seconds{3}) << "when the second of them ended";
  EXPECT_EQ(met->succeeded, "0-1,3");
}

// The end is that of the pod that made the number full: if they ended 9, 7 and 5 s ago, the second
// one. A count above the number of pods is never met.
TEST(SuccessPolicy, OfACountAsksForSoManyOfThoseThatItNames) {
  EXPECT_EQ(Gang({9, 5, 7, -1}).under({"", 2})->at, kSeenAt - seconds{7});
  EXPECT_EQ(Gang({9, 5, 7, -1}).under({"1-3", 2})->at, kSeenAt - seconds{5});
  EXPECT_FALSE(Gang({9, 5, -1, -1}).under({"1-3", 2}).has_value());
  EXPECT_FALSE(Gang({9, 5, 7}).under({"", 4}).has_value());
}

// The order of the rules decides, as in the batch group; rule 0 is not met, and rule 2 would be.
TEST(SuccessPolicy, TheFirstRuleThatIsMetCounts) {
  const Gang gang{{-1, 5}};
  const auto met = early_success({{{"0", {}}, {"1", {}}, {"", 1}}}, gang.slots, gang.pods, kSeenAt);
  ASSERT_TRUE(met.has_value());
  EXPECT_EQ(met->rule, 1U);
}

// A rule that is legal by the schema and can never hold would let the gang wait forever. The first
// rule is sound, so sentences must name the second, rules[1].
TEST(SuccessPolicy, RulesThatCannotBeMetAreNamed) {
  const auto problems_of = [](const kube::SuccessRule& rule) {
    return success_policy_problems({{{"0", {}}, rule}});
  };
  EXPECT_THAT(problems_of({"0-2,7", 4}), IsEmpty());
  EXPECT_THAT(problems_of({"", 1}), IsEmpty());
  EXPECT_THAT(problems_of({"3-1", {}}), ElementsAre(HasSubstr("rules[1].succeededIndexes")));
  EXPECT_THAT(problems_of({"", {}}), ElementsAre(HasSubstr("rules[1]: says nothing")));
  for (const int count : {0, 5}) {
    EXPECT_THAT(problems_of({"0-2,7", count}), ElementsAre(HasSubstr("rules[1].succeededCount")));
  }
}

}  // namespace
}  // namespace control
