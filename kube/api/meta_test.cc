#include "kube/api/meta.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

constexpr base::Instant kThen = base::instant_from_micros(1'000'000'500'000);
constexpr base::Instant kLater = kThen + std::chrono::minutes{5};

Condition ready(ConditionStatus status, std::string reason) {
  Condition condition;
  condition.type = "Ready";
  condition.status = status;
  condition.reason = std::move(reason);
  return condition;
}

// The reason changes at kLater; the condition has been False since kThen, so its time is that of
// kThen: users read it as "for how long".
TEST(SetCondition, KeepsTransitionTimeWhileTheStatusStays) {
  Conditions conditions;
  EXPECT_TRUE(set_condition(conditions, ready(ConditionStatus::kFalse, "Starting"), kThen));
  EXPECT_TRUE(set_condition(conditions, ready(ConditionStatus::kFalse, "Settling"), kLater));
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].reason, "Settling");
  // Whole seconds, as metav1.Time.
  EXPECT_EQ(conditions[0].last_transition_time, base::instant_from_micros(1'000'000'000'000));
}

// A condition that is absent counts as not true.
TEST(SetCondition, MovesTransitionTimeWithTheStatus) {
  Conditions conditions;
  (void)set_condition(conditions, ready(ConditionStatus::kFalse, "Starting"), kThen);
  EXPECT_TRUE(set_condition(conditions, ready(ConditionStatus::kTrue, "Settled"), kLater));
  EXPECT_EQ(conditions[0].last_transition_time, std::chrono::floor<std::chrono::seconds>(kLater));
  EXPECT_TRUE(is_true(conditions, "Ready"));
  EXPECT_FALSE(is_true(conditions, "Accepted"));
}

// The caller writes to the server only if this returns true: an equal condition five minutes later
// must not be a write.
TEST(SetCondition, SaysWhenNothingChanged) {
  Conditions conditions;
  (void)set_condition(conditions, ready(ConditionStatus::kTrue, "Settled"), kThen);
  EXPECT_FALSE(set_condition(conditions, ready(ConditionStatus::kTrue, "Settled"), kLater));
}

// The bound of the CRDs is eight times as high. The wanted message is compared with the stored one,
// so the same sentence once more changes nothing.
TEST(SetCondition, ShortensALongMessage) {
  Condition condition = ready(ConditionStatus::kFalse, "Starting");
  condition.message = std::string(40'000, 'x');
  Conditions conditions;
  EXPECT_TRUE(set_condition(conditions, condition, kThen));
  EXPECT_EQ(conditions[0].message.size(), kStatusMessageBytesMax);
  EXPECT_TRUE(conditions[0].message.ends_with("xx..."));
  EXPECT_FALSE(set_condition(conditions, condition, kLater));
}

// An unknown operator matches nothing: a partition with too few nodes is seen, one with too many is
// not.
TEST(Matches, NeedsEveryRequirement) {
  const Labels labels{{"pool", "batch"}, {"zone", "b"}};
  EXPECT_TRUE(matches({}, labels));
  EXPECT_TRUE(matches({.match_labels = {{"pool", "batch"}}, .match_expressions = {}}, labels));
  EXPECT_FALSE(matches({.match_labels = {{"pool", "gpu"}}, .match_expressions = {}}, labels));
  const struct {
    LabelSelectorRequirement requirement;
    bool want;
  } cases[] = {
      {{"zone", "In", {"a", "b"}}, true},   {{"zone", "In", {"a"}}, false},
      {{"zone", "NotIn", {"a"}}, true},     {{"rack", "NotIn", {"a"}}, true},
      {{"zone", "Exists", {}}, true},       {{"rack", "Exists", {}}, false},
      {{"rack", "DoesNotExist", {}}, true}, {{"zone", "DoesNotExist", {}}, false},
      {{"zone", "Near", {"b"}}, false},
  };
  for (const auto& one : cases) {
    const LabelSelector selector{.match_labels = {}, .match_expressions = {one.requirement}};
    EXPECT_EQ(matches(selector, labels), one.want)
        << one.requirement.key << " " << one.requirement.op;
  }
}

// An object may have several owners, of which one at most is its controller.
TEST(ControllerOf, IsTheOwnerThatControls) {
  ObjectMeta meta;
  EXPECT_EQ(controller_of(meta), nullptr);
  meta.owner_references = {{.name = "a"}, {.name = "b", .controller = true}};
  ASSERT_NE(controller_of(meta), nullptr);
  EXPECT_EQ(controller_of(meta)->name, "b");
}

}  // namespace
}  // namespace kube
