// 13.4: job arrays.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/priority/basic.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

JobId task(std::int64_t array, int number) {
  return JobId::of_task(JobId{array}, number);
}

JobRequest array_of(std::int64_t id, int tasks, std::optional<int> at_once = {}) {
  JobRequest request = job(id, 1);
  request.array.emplace().at_once = at_once;
  request.array->tasks.insert(0, tasks - 1);
  return request;
}

class Arrays : public ::testing::Test {
 protected:
  std::vector<NodeSpec> two = nodes("n", 1, 2);
  Driver driver{gang_linear({partition("p", two, OverSubscribe::kNo)}), two};

  void submit(JobRequest request) {
    request.submit_time = driver.now();
    tell(Submit{std::move(request)});
  }
  void tell(const Event& event) {
    driver.step(driver.now(), event);
    driver.run_until(driver.now());
    EXPECT_EQ(driver.scheduler().check_invariants(), "");
  }
  void end(JobId id, JobState verdict = JobState::kCompleted) {
    tell(JobGone{id, verdict, verdict == JobState::kCompleted ? 0 : 1});
  }
  // Returns each task's state: R, P (waits by itself), w (with the array), and what it ended as.
  std::string tasks(std::int64_t array) {
    const JobView whole = driver.view(array);
    std::string states;
    whole.facts->request->array->tasks.each([&](int number) {
      const auto own = driver.scheduler().job(task(array, number), driver.now());
      if (own) {
        states += own->state == JobState::kPending ? 'P' : 'R';
      } else if (whole.facts->array->waiting.contains(number)) {
        states += 'w';
      } else {
        const auto ended = static_cast<std::size_t>(whole.facts->array->outcomes.of(number));
        states += std::string{"?+-c"}[ended];
      }
    });
    return states;
  }
  std::vector<StateChange> changes_of(JobId id) {
    std::vector<StateChange> changes;
    for (const Decision& decision : driver.take_log()) {
      const auto* change = std::get_if<StateChange>(&decision);
      if (change != nullptr && change->job == id) changes.push_back(*change);
    }
    return changes;
  }
};

TEST_F(Arrays, StartTaskByTask) {
  submit(array_of(5, 4));
  submit(job(6, 1));
  EXPECT_EQ(tasks(5), "RRww");
  EXPECT_EQ(driver.view(5).reason, Reason::kResources);
  EXPECT_EQ(driver.view(6).reason, Reason::kPriority);
  end(task(5, 1));
  EXPECT_EQ(tasks(5), "R+Rw");
  end(task(5, 0), JobState::kFailed);
  EXPECT_EQ(tasks(5), "-+RR");
  end(task(5, 2));
  EXPECT_EQ(driver.view(6).state, JobState::kRunning);
  driver.take_log();
  end(task(5, 3));
  EXPECT_EQ(tasks(5), "-+++");
  const auto changes = changes_of(JobId{5});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].state, JobState::kFailed) << "as one of its tasks";
  EXPECT_EQ(changes[0].exit_code, 1) << "the highest";
}

TEST_F(Arrays, RunNoMoreTasksAtOnceThanTheyMay) {
  submit(array_of(5, 4, 1));
  submit(job(6, 1));
  EXPECT_EQ(tasks(5), "Rwww");
  EXPECT_EQ(driver.view(5).reason, Reason::kJobArrayTaskLimit);
  EXPECT_EQ(driver.view(6).state, JobState::kRunning) << "is held up by no limit of others";
  end(task(5, 0));
  EXPECT_EQ(tasks(5), "+Rww");
  tell(JobGone{JobId{6}});
  EXPECT_EQ(tasks(5), "+Rww");
  tell(Update{array_of(5, 4, 3)});
  EXPECT_EQ(tasks(5), "+RRw");
  tell(Update{array_of(5, 4, 1)});
  end(task(5, 1));
  EXPECT_EQ(tasks(5), "++Rw");
}

// No task waits any longer when the last instant at which one could have started passes.
TEST_F(Arrays, ADeadlineIsOfNoConcernToAnArrayWhoseTasksHaveAllStarted) {
  JobRequest request = array_of(5, 2);
  request.time_limit = seconds(60);
  request.deadline = at(100);
  submit(request);
  EXPECT_EQ(tasks(5), "RR");
  driver.run_until(at(50));
  EXPECT_TRUE(changes_of(JobId{5}).empty());
  EXPECT_EQ(driver.view(5).reason, Reason::kNone);
}

// On the other node: that of the first is not clean yet.
TEST_F(Arrays, ATaskThatIsCompletingMakesRoomForTheNext) {
  submit(array_of(5, 4, 1));
  tell(JobEnding{.job = task(5, 0), .verdict = JobState::kCompleted, .exit_code = 0});
  EXPECT_EQ(tasks(5), "RRww");
  EXPECT_TRUE(driver.scheduler().job(task(5, 0), driver.now())->completing);
  tell(JobGone{task(5, 0)});
  EXPECT_EQ(tasks(5), "+Rww");
}

// Tasks that wait again count, over a new leader, too, and start again all the same.
TEST_F(Arrays, BeginNoMoreTasksThanMayHaveBegun) {
  Configuration by_priority = gang_linear({partition("p", two, OverSubscribe::kNo)});
  by_priority.cluster.scheduler = SchedulerType::kBackfill;
  driver.step(driver.now(), Configure{std::make_shared<const Configuration>(by_priority)});
  JobRequest request = array_of(5, 6);
  request.array->begun_most = 2;
  submit(request);
  JobRequest first = job(6, 1);
  first.priority = Priority{4'294'967'294};
  submit(first);
  EXPECT_EQ(tasks(5), "RRwwww");
  driver.run_until(at(10));
  tell(Hold{.job = task(5, 3)});
  tell(Release{task(5, 3)});  // one that differs is not among those that have begun
  tell(Requeue{task(5, 0)});  // the other job goes first
  EXPECT_EQ(tasks(5), "PRwPww");
  EXPECT_EQ(driver.view(5).reason, Reason::kJobArrayTaskLimit);
  EXPECT_EQ(driver.view(task(5, 3)).reason, Reason::kJobArrayTaskLimit);
  JobFacts array = JobFacts::of(request);
  for (const int number : {0, 1, 3}) array.array->waiting.erase(number);
  std::vector<JobFacts> stored{array};
  for (const int number : {0, 1, 3}) {
    JobFacts& one = stored.emplace_back();
    one.id = task(5, number);
    one.request = array.request;
    one.has_begun = number != 3;
    if (one.has_begun) one.held.set(HoldBy::kAdmin);
  }
  Driver next{gang_linear({partition("p", two, OverSubscribe::kNo)}), two};
  next.scheduler().restore_from_published(at(2), stored, {});
  next.run_until(at(10));
  EXPECT_EQ(next.view(5).reason, Reason::kJobArrayTaskLimit);
  EXPECT_EQ(next.view(task(5, 3)).reason, Reason::kJobArrayTaskLimit);
  const auto running = [&] { return std::ranges::count(tasks(5), 'R'); };
  tell(JobGone{JobId{6}});
  EXPECT_EQ(tasks(5), "RRwPww");
  tell(Cancel{task(5, 0)});
  EXPECT_EQ(running(), 2);
  end(task(5, 1));
  EXPECT_EQ(running(), 2);
}

// A task that is requeued waits by itself, and counts again when it runs.
TEST_F(Arrays, RequeueSingleTasks) {
  Configuration by_priority = gang_linear({partition("p", two, OverSubscribe::kNo)});
  by_priority.cluster.scheduler = SchedulerType::kBackfill;
  driver.step(driver.now(), Configure{std::make_shared<const Configuration>(by_priority)});
  submit(array_of(5, 3, 1));
  driver.run_until(at(10));
  tell(Requeue{task(5, 0)});
  // The others have waited for longer.
  EXPECT_EQ(tasks(5), "PRw");
  EXPECT_EQ(driver.view(task(5, 0)).reason, Reason::kJobArrayTaskLimit);
  end(task(5, 1));
  EXPECT_EQ(tasks(5), "P+R");
  end(task(5, 2));
  EXPECT_EQ(tasks(5), "R++");
  EXPECT_EQ(driver.view(task(5, 0)).facts->restarts, 1);
  tell(Requeue{JobId{5}});
  EXPECT_EQ(tasks(5), "R++") << "and started at once";
  EXPECT_EQ(driver.view(task(5, 0)).facts->restarts, 2);
}

TEST_F(Arrays, HoldAndReleaseAllOrOne) {
  submit(array_of(5, 5));
  tell(Hold{task(5, 3)});
  EXPECT_EQ(tasks(5), "RRwPw");
  EXPECT_EQ(driver.view(task(5, 3)).reason, Reason::kJobHeldUser);
  tell(Hold{JobId{5}});
  end(task(5, 0));
  end(task(5, 1));
  EXPECT_EQ(tasks(5), "++wPw");
  EXPECT_EQ(driver.view(5).reason, Reason::kJobHeldUser);
  tell(Release{task(5, 4)});
  EXPECT_EQ(tasks(5), "++wPR");
  tell(Release{JobId{5}});
  EXPECT_EQ(tasks(5), "++RPR");
  end(task(5, 2));
  EXPECT_EQ(tasks(5), "+++RR");
}

TEST_F(Arrays, CancelAllOrOne) {
  submit(array_of(5, 5));
  tell(Cancel{task(5, 1)});
  tell(Cancel{task(5, 3)});
  EXPECT_EQ(tasks(5), "RcRcw");
  driver.take_log();
  tell(Cancel{JobId{5}});
  EXPECT_EQ(tasks(5), "ccccc");
  const auto changes = changes_of(JobId{5});
  ASSERT_EQ(changes.size(), 2U) << "one for the task that waited, one for the array";
  EXPECT_EQ(changes[1].state, JobState::kCancelled);
  EXPECT_TRUE(driver.view(5).facts->state == JobState::kCancelled);
  tell(Forget{JobId{5}});
  EXPECT_EQ(driver.scheduler().job(JobId{5}, driver.now()), std::nullopt);
}

TEST_F(Arrays, AreForgottenWithTheirTasks) {
  submit(array_of(5, 5));
  submit(job(6, 2));
  tell(Forget{JobId{5}});
  EXPECT_EQ(driver.scheduler().job(task(5, 0), driver.now()), std::nullopt);
  EXPECT_EQ(driver.view(6).state, JobState::kRunning);
}

// Jobs wait for an array, or one of its tasks.
TEST_F(Arrays, AreWaitedFor) {
  const auto after = [](std::int64_t id, DependencyKind kind, JobId whom) {
    JobRequest request = job(id, 1);
    request.dependency.terms = {{.kind = kind, .job = whom}};
    return request;
  };
  submit(array_of(5, 4));
  submit(after(10, DependencyKind::kAfter, JobId{5}));
  submit(after(11, DependencyKind::kAfterOk, JobId{5}));
  submit(after(12, DependencyKind::kAfterNotOk, JobId{5}));
  submit(after(13, DependencyKind::kAfterOk, task(5, 0)));
  submit(after(14, DependencyKind::kAfterOk, task(5, 3)));
  submit(after(15, DependencyKind::kAfterAny, task(5, 9)));
  EXPECT_NE(driver.view(15).reason, Reason::kDependency) << "there is no such task";
  end(task(5, 0));
  end(task(5, 1), JobState::kFailed);
  EXPECT_NE(driver.view(10).reason, Reason::kDependency) << "no task waits any more";
  EXPECT_EQ(driver.view(11).reason, Reason::kDependency) << "others may still run";
  EXPECT_NE(driver.view(13).reason, Reason::kDependency);
  EXPECT_EQ(driver.view(14).reason, Reason::kDependency);
  end(task(5, 2));
  EXPECT_EQ(driver.view(12).reason, Reason::kDependency);
  end(task(5, 3));
  EXPECT_EQ(driver.view(11).reason, Reason::kDependencyNeverSatisfied);
  EXPECT_NE(driver.view(12).reason, Reason::kDependency);
  EXPECT_NE(driver.view(14).reason, Reason::kDependency);
}

// With the tasks that wait, the last start is over that a job could wait for, though others run.
TEST_F(Arrays, HaveStartedOnceTheTasksThatWaitAreCanceled) {
  driver.ends_at_once = false;
  submit(array_of(5, 4));
  JobRequest request = job(10, 1);
  request.dependency.terms = {{.kind = DependencyKind::kAfter, .job = JobId{5}}};
  submit(request);
  EXPECT_EQ(driver.view(10).reason, Reason::kDependency);
  tell(Cancel{JobId{5}});
  EXPECT_EQ(tasks(5), "RRcc") << "they are in their grace time";
  EXPECT_NE(driver.view(10).reason, Reason::kDependency);
}

TEST_F(Arrays, WaitTaskForTask) {
  submit(array_of(5, 4));
  JobRequest request = array_of(6, 5);
  request.dependency.terms = {{.kind = DependencyKind::kAfterCorr, .job = JobId{5}}};
  submit(request);
  EXPECT_EQ(driver.view(6).reason, Reason::kDependency);
  end(task(5, 1), JobState::kFailed);
  end(task(5, 0));
  EXPECT_EQ(tasks(5), "+-RR");
  EXPECT_EQ(tasks(6), "PPwww");
  EXPECT_EQ(driver.view(task(6, 1)).reason, Reason::kDependencyNeverSatisfied);
  end(task(5, 2));
  EXPECT_EQ(tasks(6), "RPPww");
  end(task(5, 3));
  EXPECT_EQ(tasks(6), "RPRPP");
  EXPECT_EQ(driver.view(task(6, 4)).reason, Reason::kDependencyNeverSatisfied)
      << "it has none to wait for, and waits for all of them to succeed";
}

// Slurm lets a task without a counterpart wait for the whole array to succeed (recorded:
// array_corr_other_numbers_backfill), whether it is a job by itself or not, and whenever it comes.
TEST_F(Arrays, WaitForTheWholeArrayWithoutACounterpart) {
  const auto after = [](std::int64_t id) {
    JobRequest request = array_of(id, 3);
    request.dependency.terms = {{.kind = DependencyKind::kAfterCorr, .job = JobId{5}}};
    return request;
  };
  submit(array_of(5, 2));
  submit(after(6));
  tell(Hold{task(6, 2)});
  tell(Release{task(6, 2)});
  submit(after(7));
  EXPECT_EQ(tasks(6), "wwP");
  end(task(5, 0));
  EXPECT_EQ(driver.view(task(6, 2)).reason, Reason::kDependency) << tasks(6);
  end(task(5, 1));
  end(task(6, 0));
  end(task(6, 1));
  EXPECT_EQ(tasks(6), "++R");
  for (const JobId id : {task(6, 2), task(7, 0), task(7, 1), task(7, 2)}) end(id);
  EXPECT_EQ(tasks(7), "+++");
  submit(after(8));
  EXPECT_EQ(tasks(8), "RRw");
}

// An array that was not accepted yet: its tasks are not known, and it may have any.
TEST_F(Arrays, ThatComeLaterAreWaitedFor) {
  const KnownJob first{task(5, 1), JobState::kPending, {}};
  const KnownJob none{task(5, 9), JobState::kPending, {}};
  const auto after = [](std::int64_t id, DependencyKind kind, JobId whom) {
    JobRequest request = job(id, 1);
    request.dependency.terms = {{.kind = kind, .job = whom}};
    return request;
  };
  tell(Submit{after(10, DependencyKind::kAfterOk, first.job), {first}});
  tell(Submit{after(11, DependencyKind::kAfterOk, none.job), {none}});
  JobRequest request = after(6, DependencyKind::kAfterCorr, JobId{5});
  request.array.emplace().tasks.insert(0, 2);
  tell(Submit{request, {{JobId{5}, JobState::kPending, {}}}});
  tell(Hold{task(6, 2)});
  tell(Release{task(6, 2)});
  for (const std::int64_t id : {10, 11, 6}) {
    EXPECT_EQ(driver.view(id).reason, Reason::kDependency) << id;
  }
  submit(array_of(5, 2));
  EXPECT_EQ(driver.view(10).reason, Reason::kDependency);
  EXPECT_EQ(driver.view(11).state, JobState::kRunning) << "there is no such task";
  end(JobId{11});
  end(task(5, 0));
  end(task(5, 1));
  EXPECT_NE(driver.view(10).reason, Reason::kDependency);
  EXPECT_NE(driver.view(task(6, 2)).reason, Reason::kDependency);
}

// The caller says which tasks of an array that is gone have succeeded.
TEST_F(Arrays, KnowTheTwinsOfAnArrayThatIsGone) {
  JobRequest request = array_of(6, 3);
  request.dependency.terms = {{.kind = DependencyKind::kAfterCorr, .job = JobId{5}}};
  tell(Submit{request,
              {{JobId{5}, JobState::kFailed, {}}, {task(5, 1), JobState::kCompleted, {}}}});
  EXPECT_EQ(tasks(6), "PRP");
  for (const int number : {0, 2}) {
    EXPECT_EQ(driver.view(task(6, number)).reason, Reason::kDependencyNeverSatisfied);
  }
  request.id = JobId{7};
  tell(Submit{request, {{JobId{5}, JobState::kFailed, {}}}});
  EXPECT_EQ(tasks(7), "www");
  EXPECT_EQ(driver.view(7).reason, Reason::kDependencyNeverSatisfied);
}

// An array that was never accepted may be canceled, or be deleted.
TEST_F(Arrays, ThatNeverComeAreNotWaitedForAnyMore) {
  JobRequest request = job(10, 1);
  request.dependency.terms = {{.kind = DependencyKind::kAfterAny, .job = task(5, 1)}};
  tell(Submit{request, {{task(5, 1), JobState::kPending, {}}}});
  EXPECT_EQ(driver.view(10).reason, Reason::kDependency);
  tell(Forget{JobId{5}});
  EXPECT_NE(driver.view(10).reason, Reason::kDependency);
}

TEST_F(Arrays, CannotWaitForTheirOwnTasks) {
  JobRequest request = array_of(5, 4);
  request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = task(5, 1)}};
  EXPECT_NE(driver.scheduler().refused_dependency(request), std::nullopt);
  submit(array_of(6, 4));
  request = job(7, 1);
  request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = task(6, 3)}};
  submit(request);
  request = array_of(6, 4);
  request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{7}}};
  EXPECT_NE(driver.scheduler().refused_dependency(request), std::nullopt);
}

// The array's tasks are jobs of their own, and may wait for other jobs than the rest does.
TEST_F(Arrays, AreNotWaitedForByWhatTheirTasksWaitFor) {
  JobRequest held = job(7, 1);
  held.hold = true;
  submit(held);
  submit(array_of(5, 3));
  EXPECT_EQ(tasks(5), "RRw");
  JobRequest request = array_of(5, 3);
  request.id = task(5, 2);
  request.array.reset();
  request.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{7}}};
  tell(Update{request});
  EXPECT_EQ(tasks(5), "RRP");
  EXPECT_EQ(driver.view(task(5, 2)).reason, Reason::kDependency);
  held.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{5}}};
  EXPECT_NE(driver.scheduler().refused_dependency(held), std::nullopt);
  held.dependency.terms = {{.kind = DependencyKind::kAfterOk, .job = task(5, 1)}};
  EXPECT_EQ(driver.scheduler().refused_dependency(held), std::nullopt);
}

// Also if no task waits as the array any longer: no job waits for the new terms, and they are
// looked at once more when the last task ends.
TEST_F(Arrays, HaveAStateForEachTermOfAnotherDependency) {
  const auto known = [](std::vector<std::int64_t> jobs) {
    JobRequest request = array_of(5, 2);
    for (const std::int64_t each : jobs) {
      request.dependency.terms.push_back({.kind = DependencyKind::kAfterAny, .job = JobId{each}});
    }
    return request;
  };
  submit(known({98, 99}));
  EXPECT_EQ(tasks(5), "RR") << "these jobs are unknown";
  tell(Update{known({})});
  EXPECT_EQ(driver.view(5).facts->terms.size(), 0U);
  tell(Update{known({97, 98, 99})});
  EXPECT_EQ(driver.view(5).facts->terms.size(), 3U);
  EXPECT_EQ(driver.view(5).facts->terms, std::vector(3, TermState::kMet));
  tell(Update{known({99})});
  end(task(5, 0));
  end(task(5, 1));
  EXPECT_EQ(driver.view(5).state, JobState::kCompleted);
}

// The stored state may be about an earlier dependency.
TEST_F(Arrays, AreRestoredWithAStateForEachTerm) {
  for (const std::size_t stored : {0U, 1U, 3U}) {
    JobFacts waits = JobFacts::of(array_of(5, 4));
    waits.change_request([](JobRequest& request) {
      request.dependency.terms = {{.kind = DependencyKind::kAfterAny, .job = JobId{9}},
                                  {.kind = DependencyKind::kAfterAny, .job = JobId{8}}};
    });
    waits.terms.assign(stored, TermState::kMet);
    JobFacts over = waits;  // no task waits as the array, and one waits by itself
    over.array->waiting = {};
    JobFacts alone;
    alone.id = task(5, 3);
    alone.request = waits.request;
    alone.terms = waits.terms;
    JobFacts other = JobFacts::of(job(9, 1));
    other.held.set(HoldBy::kAdmin);
    for (const bool all_started : {false, true}) {
      Driver next{gang_linear({partition("p", two, OverSubscribe::kNo)}), two};
      std::vector<JobFacts> jobs{all_started ? over : waits};
      if (all_started) jobs.push_back(alone);
      jobs.push_back(other);
      next.scheduler().restore_from_published(at(2), jobs, {});
      EXPECT_EQ(next.scheduler().check_invariants(), "") << stored;
      EXPECT_EQ(next.view(5).facts->terms.size(), 2U);
      const JobId who = all_started ? task(5, 3) : JobId{5};
      EXPECT_EQ(next.view(who).reason == Reason::kDependency, stored == 0);
      next.step(at(3), Cancel{JobId{5}});
      EXPECT_EQ(next.view(5).state, JobState::kCancelled);
    }
  }
}

// A new leader finds that the task can never start, and hears of its end before anything else.
TEST_F(Arrays, ForgetATaskThatHasEndedAtOnce) {
  JobFacts array = JobFacts::of(array_of(5, 3));
  array.change_request([](JobRequest& request) {
    request.dependency = {.any = false,
                          .kill_invalid = true,
                          .terms = {{.kind = DependencyKind::kAfterOk, .job = JobId{9}}}};
  });
  array.array->waiting.erase(1);
  array.terms = {TermState::kMet};
  JobFacts alone;
  alone.id = task(5, 1);
  alone.request = array.request;
  alone.terms = {TermState::kFailed};
  driver.scheduler().restore_from_published(driver.now(), {array, alone}, {});
  tell(Forget{task(5, 1)});
  EXPECT_EQ(tasks(5), "RcR");
}

// A longer limit of a task that runs counts at each instant.
TEST_F(Arrays, AnUpdateSaysWhatSingleTasksHaveInstead) {
  JobRequest request = array_of(5, 4);
  request.time_limit = seconds(60);
  submit(request);
  JobRequest one = request;
  one.id = task(5, 0);
  one.array.reset();
  one.time_limit = seconds(600);
  tell(Update{one});
  driver.run_until(at(100));
  EXPECT_EQ(driver.view(task(5, 0)).state, JobState::kRunning);
  (void)driver.take_log();
  request.time_limit = seconds(50);
  tell(Update{.request = request, .tasks = {{0, {.time_limit = seconds(600)}}}});
  EXPECT_EQ(driver.view(task(5, 0)).facts->request->time_limit, seconds(600));
  for (const Decision& decision : driver.take_log()) {
    EXPECT_FALSE(std::holds_alternative<LimitChanged>(decision) &&
                 std::get<LimitChanged>(decision).job == task(5, 0));
  }
  EXPECT_EQ(driver.view(task(5, 0)).state, JobState::kRunning);
}

// An update of the array concerns its other fields: the task would wait for a resume after its next
// requeue.
TEST_F(Arrays, ATaskThatWasResumedStaysSoWhenItsArrayChanges) {
  submit(job(6, 2));
  JobRequest request = array_of(5, 2);
  request.suspend = true;
  submit(request);
  tell(UserResume{task(5, 1)});
  EXPECT_EQ(tasks(5), "wP");
  request.name = "other";
  tell(Update{request});
  end(JobId{6});
  EXPECT_EQ(tasks(5), "wR");
  tell(Requeue{task(5, 1)});
  driver.run_until(driver.now() + seconds(300));
  EXPECT_EQ(tasks(5), "wR") << "it runs again";
  EXPECT_EQ(driver.view(task(5, 1)).facts->restarts, 1);
}

// The array stays held, whether its spec said so from the beginning or a hold came later. A task of
// it that was released keeps its place in the queue, and so does not get its hold back for an
// instant; one that is held stays so beside an array that is not.
TEST_F(Arrays, AnUpdateLeavesTheHoldsOfTasksAsTheyAre) {
  for (const bool is_held_later : {false, true}) {
    const std::int64_t beside = is_held_later ? 7 : 6;
    submit(job(beside, 2));
    JobRequest request = array_of(5, 3);
    request.hold = !is_held_later;
    submit(request);
    if (is_held_later) tell(Hold{JobId{5}});
    request.hold = true;
    tell(Release{task(5, 1)});
    const Priority before = driver.view(task(5, 1)).priority;
    for (const int nice : {1, 2}) {
      request.nice = nice;
      tell(Update{request});
      EXPECT_EQ(driver.view(5).reason, Reason::kJobHeldUser);
      EXPECT_EQ(driver.view(task(5, 1)).reason, Reason::kResources);
      EXPECT_EQ(driver.view(task(5, 1)).priority, BasicPriorities::with_nice(before, 0, nice));
    }
    end(JobId{beside});
    EXPECT_EQ(tasks(5), "wRw");
    tell(Forget{JobId{5}});
  }
  submit(array_of(5, 3));
  tell(Hold{task(5, 2)});
  JobRequest request = array_of(5, 3);
  request.priority = Priority{7};
  tell(Update{request});
  EXPECT_EQ(driver.view(task(5, 2)).reason, Reason::kJobHeldUser);
}

// A priority that is taken back is so for the array too when all of its tasks have nodes: a new
// leader would take it for a number of the counter, and later jobs would come behind it.
TEST_F(Arrays, APriorityThatIsTakenBackSaysNothingOfLaterJobs) {
  JobRequest request = array_of(1, 2);
  request.priority = Priority{7};
  submit(request);
  ASSERT_EQ(tasks(1), "RR");
  request.priority.reset();
  tell(Update{request});
  EXPECT_GT(driver.view(JobId{1}).priority, Priority{7});
}

// MaxArraySize counts at the submission: what has been accepted under another one stays.
TEST_F(Arrays, NumbersOfTasksAreBelowMaxArraySize) {
  submit(array_of(5, 5));
  Configuration small = gang_linear({partition("p", two, OverSubscribe::kNo)});
  for (const int size : {0, 3}) {
    small.cluster.max_array_size = size;
    driver.step(driver.now(), Configure{std::make_shared<const Configuration>(small)});
    submit(array_of(6, 4));
    EXPECT_EQ(driver.scheduler().job(JobId{6}, driver.now()), std::nullopt);
  }
  submit(array_of(7, 3));
  EXPECT_NE(driver.scheduler().job(JobId{7}, driver.now()), std::nullopt);
  tell(Update{array_of(5, 5, 1)});
  end(task(5, 0));
  EXPECT_EQ(tasks(5).front(), '+');
  EXPECT_EQ(driver.view(5).facts->request->array->at_once, 1);
}

// A limit on submitted jobs counts each task.
TEST_F(Arrays, CountAsTheirTasksWhereSubmissionsAreLimited) {
  Configuration limited = gang_linear({partition("p", two, OverSubscribe::kNo)});
  limited.qos.push_back({.name = "q"});
  limited.qos.back().limits.user_submit = 4;
  driver.step(driver.now(), Configure{std::make_shared<const Configuration>(limited)});
  JobRequest first = array_of(5, 3), second = array_of(6, 2), third = job(7, 1);
  for (JobRequest* request : {&first, &second, &third}) {
    request->qos = "q";
    submit(*request);
  }
  EXPECT_EQ(driver.scheduler().job(JobId{6}, driver.now()), std::nullopt);
  EXPECT_NE(driver.scheduler().job(JobId{7}, driver.now()), std::nullopt);
  end(task(5, 0));
  submit(second);
  EXPECT_EQ(driver.scheduler().job(JobId{6}, driver.now()), std::nullopt);
  tell(Cancel{JobId{5}});
  submit(second);
  EXPECT_NE(driver.scheduler().job(JobId{6}, driver.now()), std::nullopt);
}

}  // namespace
}  // namespace sched::testing
