// How the outcomes of the tasks of an array are stored, and an entry of a task as the status of a
// job.
#include "api/array_status.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"

namespace kube {
namespace {

using std::chrono::seconds;

TEST(TaskOutcomes, AreRangesThatPeopleRead) {
  TaskOutcomes outcomes;
  for (int task = 0; task < 38; ++task) outcomes.set(task, TaskOutcome::kSucceeded);
  outcomes.set(7, TaskOutcome::kFailed);
  outcomes.set(40, TaskOutcome::kCancelled);
  ArrayStatus status;
  outcomes.show(status);
  EXPECT_EQ(status.succeeded, "0-6,8-37");
  EXPECT_EQ(status.failed, "7");
  EXPECT_EQ(status.cancelled, "40");
  EXPECT_EQ(status.outcomes, "");
  EXPECT_EQ(outcomes.count(TaskOutcome::kSucceeded), 37);
  EXPECT_EQ(outcomes.ended(), 39);
}

// The worst pattern of the largest array: what is stored says all of it, and stays small.
TEST(TaskOutcomes, OfAnyPatternTakeABoundedText) {
  TaskOutcomes outcomes;
  std::uint64_t random = 1;
  for (int task = 0; task < kArrayTasksMax; ++task) {
    random = random * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    outcomes.set(task, static_cast<TaskOutcome>(random >> 62U));
  }
  ArrayStatus status;
  outcomes.show(status);
  EXPECT_LT(status.outcomes.size() + status.failed.size(), 35'000U);
  EXPECT_EQ(status.succeeded, "");
  EXPECT_NE(status.failed, "");
  const TaskOutcomes read{status};
  for (int task = 0; task < kArrayTasksMax; ++task) ASSERT_EQ(read.of(task), outcomes.of(task));
  EXPECT_EQ(read.ended(), outcomes.ended());
}

TEST(TaskOutcomes, WhatIsNoTextOfOursSaysNothing) {
  ArrayStatus status;
  status.succeeded = "5-1";
  status.outcomes = "!!";
  EXPECT_EQ(TaskOutcomes{status}.ended(), 0);
}

TEST(TaskEntry, HasWhatANewLeaderNeeds) {
  const base::Instant at = base::Instant{} + seconds{1'000'000};
  JobStatus status;
  status.job_id = 12;
  status.state = JobState::kRunning;
  status.starts = 2;
  status.restarts = 1;
  status.allocation = Allocation{.hostlist = "n1", .nodes = 1, .cpus = 4};
  status.partition = "batch";
  status.submit_time = at;
  status.observed = JobObserved{.requeue_request = 3};
  set_condition(
      status.conditions,
      {.type = std::string{kReady}, .status = ConditionStatus::kFalse, .reason = "Starting"},
      at + seconds{5});
  ArrayTask entry = task_entry(7, status);
  EXPECT_EQ(entry.task, 7);
  JobStatus read = task_status(entry, {});
  EXPECT_FALSE(is_true(read.conditions, kReady));
  EXPECT_EQ(find_condition(read.conditions, kReady)->last_transition_time, at + seconds{5});
  EXPECT_EQ(task_entry(7, read), entry);
  // Once it is ready.
  set_condition(
      status.conditions,
      {.type = std::string{kReady}, .status = ConditionStatus::kTrue, .reason = "Settled"},
      at + seconds{9});
  status.start_time = at + seconds{9};
  entry = task_entry(7, status);
  read = task_status(entry, {});
  EXPECT_TRUE(is_true(read.conditions, kReady));
  EXPECT_EQ(read.start_time, at + seconds{9});
  EXPECT_EQ(task_entry(7, read), entry);
}

// It is what records know of a run before a requeue.
TEST(TaskEntry, HasTheUseOfTheLastStartWhileItWaits) {
  JobStatus status;
  status.state = JobState::kPending;
  status.restarts = 1;
  EXPECT_FALSE(task_entry(7, status).usage);
  status.usage = JobUsage{.user_cpu = seconds{3}, .steps = {{.id = "batch"}, {.id = "0"}}};
  const ArrayTask entry = task_entry(7, status);
  const JobUsage want{.user_cpu = seconds{3}, .steps = {{.id = "batch"}}, .more_steps = 1};
  ASSERT_TRUE(entry.usage);
  EXPECT_EQ(*entry.usage, want);
  EXPECT_EQ(task_status(entry, {}).usage, want);
}

TEST(ArraySummary, IsALine) {
  EXPECT_EQ(array_summary({.waiting = 960, .running = 4, .succeeded = 35, .failed = 1}),
            "36 of 1000 done, 4 run, 1 failed");
  EXPECT_EQ(array_summary({.succeeded = 3, .cancelled = 2}), "5 of 5 done, 2 canceled");
}

}  // namespace
}  // namespace kube
