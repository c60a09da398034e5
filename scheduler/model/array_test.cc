#include "scheduler/model/array.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"
#include "scheduler/model/ids.h"

namespace sched {
namespace {

TEST(JobId, NamesJobsArraysAndTasks) {
  const JobId array{12};
  const JobId task = JobId::of_task(array, 3);
  EXPECT_EQ(array.task(), std::nullopt);
  EXPECT_EQ(task.task(), 3);
  EXPECT_EQ(task.number(), 12);
  EXPECT_EQ(task.array(), array);
  EXPECT_EQ(to_string(task), "12_3");
  EXPECT_EQ(JobId::of_task(array, JobId::kTasksMax - 1).number(), 12);
  EXPECT_LT(array, JobId::of_task(array, 0));
  EXPECT_LT(JobId::of_task(array, JobId::kTasksMax - 1), JobId{13});
}

// Against std::set.
TEST(TaskSet, IsASetOfNumbers) {
  base::Prng prng{1};
  TaskSet set;
  std::set<int> model;
  for (int i = 0; i < 20'000; ++i) {
    const int task = static_cast<int>(prng.below(300));
    if (prng.below(2) == 0) {
      set.insert(task);
      model.insert(task);
    } else {
      set.erase(task);
      model.erase(task);
    }
    ASSERT_EQ(set.size(), static_cast<int>(model.size()));
    const int from = static_cast<int>(prng.below(400));
    const auto next = model.lower_bound(from);
    ASSERT_EQ(set.next(from), next == model.end() ? std::nullopt : std::optional{*next});
    ASSERT_EQ(set.contains(from), model.contains(from));
    ASSERT_EQ(set.last(), model.empty() ? std::nullopt : std::optional{*model.rbegin()});
    ASSERT_EQ(set.count_below(from), std::distance(model.begin(), next));
  }
  std::set<int> visited;
  set.each([&](int task) { visited.insert(task); });
  EXPECT_EQ(visited, model);
}

TEST(TaskSet, EqualsWhateverWasInIt) {
  TaskSet a, b;
  a.insert(1);
  b.insert(0, 1'000);
  for (int task = 0; task <= 1'000; ++task) {
    if (task != 1) b.erase(task);
  }
  EXPECT_EQ(a, b);
  b.insert(999);
  EXPECT_NE(a, b);
}

TEST(TaskOutcomes, AreKeptAndCounted) {
  TaskOutcomes outcomes;
  EXPECT_EQ(outcomes.of(70), TaskOutcome::kNotEnded);
  outcomes.set(70, TaskOutcome::kFailed);
  outcomes.set(71, TaskOutcome::kCanceled);
  outcomes.set(3, TaskOutcome::kSucceeded);
  EXPECT_EQ(outcomes.of(70), TaskOutcome::kFailed);
  EXPECT_EQ(outcomes.of(71), TaskOutcome::kCanceled);
  EXPECT_EQ(outcomes.of(72), TaskOutcome::kNotEnded);
  EXPECT_EQ(outcomes.ended(), 3);
  outcomes.set(70, TaskOutcome::kNotEnded);
  EXPECT_EQ(outcomes.ended(), 2);
  EXPECT_EQ(outcomes.count(TaskOutcome::kFailed), 0);
}

}  // namespace
}  // namespace sched
