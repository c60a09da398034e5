#include "operator/publish/inform_budget.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Instant kBudgetAt{std::chrono::seconds{1'000}};

// Spends all tokens; returns how many there were.
int spend_all(InformBudget& budget) {
  int spent = 0;
  for (; budget.has_one(); ++spent) budget.spend_one();
  return spent;
}

// A token is one write that only informs. Two remain under load, so that reasons do not stand still
// for as long as it lasts. A new leader begins with none: it has all reasons to compare at once.
TEST(InformBudget, GivesTwentyPerSecondAndTwoWhileMoreImportantWritesWait) {
  InformBudget budget;
  budget.restore(kBudgetAt);
  EXPECT_FALSE(budget.has_one());
  budget.refill(kBudgetAt + seconds{1}, false);
  EXPECT_EQ(spend_all(budget), 20);
  budget.refill(kBudgetAt + seconds{2}, true);
  EXPECT_EQ(spend_all(budget), 2);
  EXPECT_TRUE(budget.is_busy());
  budget.refill(kBudgetAt + seconds{60}, false);
  EXPECT_FALSE(budget.is_busy());
  EXPECT_EQ(spend_all(budget), 20) << "no more than a second's worth is saved up";
}

// By priority, then by number. One that was written half a minute ago waits, whatever its priority
// is. Users look at the jobs that are to start next.
TEST(InformBudget, TheHeadOfTheQueueGoesFirstAndSomeHaveToWait) {
  InformBudget budget;
  budget.queue({.priority = 1, .id = sched::JobId{1}, .uid = "low"}, kBudgetAt, kBudgetAt);
  budget.queue({.priority = 9, .id = sched::JobId{3}, .uid = "high, later"}, kBudgetAt, kBudgetAt);
  budget.queue({.priority = 9, .id = sched::JobId{2}, .uid = "high"}, kBudgetAt, kBudgetAt);
  budget.queue({.priority = 99, .id = sched::JobId{4}, .uid = "said"}, kBudgetAt + seconds{30},
               kBudgetAt);
  EXPECT_EQ(budget.next_due(kBudgetAt), kBudgetAt + milliseconds{50});
  EXPECT_EQ(budget.take_first(), "high");
  EXPECT_EQ(budget.take_first(), "high, later");
  EXPECT_EQ(budget.take_first(), "low");
  EXPECT_EQ(budget.take_first(), std::nullopt);
  EXPECT_EQ(budget.take_later(kBudgetAt + seconds{29}), std::nullopt);
  EXPECT_EQ(budget.next_due(kBudgetAt), kBudgetAt + seconds{30});
  EXPECT_EQ(budget.take_later(kBudgetAt + seconds{30}), "said");
  EXPECT_EQ(budget.next_due(kBudgetAt), base::kNever);
}

}  // namespace
}  // namespace control
