// 13.1: jobs that wait for other jobs.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

class Dependencies : public ::testing::Test {
 protected:
  std::vector<NodeSpec> four = nodes("n", 1, 4);
  Driver driver{gang_linear({partition("p", four, OverSubscribe::kNo)}), four};

  static DependencyTerm term(DependencyKind kind, std::int64_t job = 0, double delay = 0) {
    return {.kind = kind, .job = JobId{job}, .delay = seconds(delay)};
  }
  static JobRequest waiting(std::int64_t id, std::vector<DependencyTerm> terms, bool any = false) {
    JobRequest request = job(id, 1);
    request.dependency = {.any = any, .kill_invalid = {}, .terms = std::move(terms)};
    return request;
  }
  void submit(JobRequest request, std::vector<KnownJob> known = {}) {
    request.submit_time = driver.now();
    driver.step(driver.now(), Submit{std::move(request), std::move(known)});
    driver.run_until(driver.now());
  }
  void end(std::int64_t id, JobState verdict = JobState::kCompleted) {
    driver.step(driver.now(), JobGone{JobId{id}, verdict, verdict == JobState::kCompleted ? 0 : 1});
    driver.run_until(driver.now());
  }
  bool runs(std::int64_t id) const { return driver.view(id).state == JobState::kRunning; }
  Reason reason(std::int64_t id) const { return driver.view(id).reason; }
  // Returns the last word on the job.
  std::string message(std::int64_t id) {
    std::string sentence;
    for (const Decision& decision : driver.take_log()) {
      const auto* waits = std::get_if<Waits>(&decision);
      if (waits != nullptr && waits->job == JobId{id}) sentence = waits->message;
    }
    return sentence;
  }
};

// Each kind, for a job that succeeds and for one that fails.
TEST_F(Dependencies, StartWhenTheirKindSaysSo) {
  submit(job(1, 1));
  submit(job(2, 1));
  submit(waiting(3, {term(DependencyKind::kAfter, 1)}));
  EXPECT_TRUE(runs(3));  // job 1 runs already
  end(3);
  int id = 10;
  for (const auto kind :
       {DependencyKind::kAfterAny, DependencyKind::kAfterOk, DependencyKind::kAfterNotOk}) {
    submit(waiting(id++, {term(kind, 1)}));
    submit(waiting(id++, {term(kind, 2)}));
  }
  for (int waits = 10; waits < id; ++waits) EXPECT_EQ(reason(waits), Reason::kDependency);
  end(1);
  end(2, JobState::kFailed);
  EXPECT_TRUE(runs(10) && runs(11));
  EXPECT_TRUE(runs(12));
  EXPECT_EQ(reason(13), Reason::kDependencyNeverSatisfied);
  EXPECT_EQ(reason(14), Reason::kDependencyNeverSatisfied);
  EXPECT_TRUE(runs(15));
}

TEST_F(Dependencies, SayWhatTheyWaitFor) {
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfterOk, 1), term(DependencyKind::kAfterAny, 1)}));
  EXPECT_EQ(message(2), "waits for job 1 to succeed, and for 1 more");
  end(1, JobState::kFailed);
  EXPECT_EQ(message(2), "can never start: job 1 has not succeeded");
}

TEST_F(Dependencies, NeedAllOrOneOfTheirTerms) {
  submit(job(1, 1));
  submit(job(2, 1));
  const std::vector<DependencyTerm> both{term(DependencyKind::kAfterOk, 1),
                                         term(DependencyKind::kAfterOk, 2)};
  submit(waiting(3, both));
  submit(waiting(4, both, true));
  end(1, JobState::kFailed);
  EXPECT_EQ(reason(3), Reason::kDependencyNeverSatisfied);
  EXPECT_EQ(reason(4), Reason::kDependency);
  end(2);
  EXPECT_FALSE(runs(3));
  EXPECT_TRUE(runs(4));
}

// A requeue of the other job does not mend a term that has failed, nor undo one that holds.
TEST_F(Dependencies, StayAsTheyWereDecided) {
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfter, 1)}));
  ASSERT_TRUE(runs(2));
  driver.step(driver.now(), Requeue{JobId{1}});
  driver.step(driver.now(), Hold{JobId{1}});
  driver.step(driver.now(), Requeue{JobId{2}});
  driver.run_until(driver.now());
  EXPECT_TRUE(runs(2));
}

TEST_F(Dependencies, WaitForTheirDelay) {
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfter, 1, 60)}));
  driver.run_until(at(59));
  EXPECT_EQ(reason(2), Reason::kDependency);
  driver.run_until(at(61));
  EXPECT_TRUE(runs(2));
}

// An end by hand is an end, also for a job that waits; a chain falls at once.
TEST_F(Dependencies, AreCanceledInAChain) {
  JobRequest held = job(1, 1);
  held.hold = true;
  submit(held);
  for (int id = 2; id <= 1000; ++id) {
    JobRequest next = waiting(id, {term(DependencyKind::kAfterOk, id - 1)});
    next.dependency.kill_invalid = true;
    submit(next);
  }
  submit(waiting(1001, {term(DependencyKind::kAfterNotOk, 1000)}));
  driver.step(driver.now(), Cancel{JobId{1}});
  driver.run_until(driver.now());
  EXPECT_EQ(driver.view(1000).state, JobState::kCancelled);
  EXPECT_TRUE(runs(1001));
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// An unknown job is not waited for, as recorded; one that the caller knows, by its state.
TEST_F(Dependencies, NameJobsThatTheSchedulerDoesNotKnow) {
  const auto after_ok = [](std::int64_t id) {
    return waiting(id, {term(DependencyKind::kAfterOk, 99)});
  };
  submit(after_ok(100));
  EXPECT_TRUE(runs(100));
  submit(after_ok(101), {{JobId{99}, JobState::kFailed}});
  EXPECT_EQ(reason(101), Reason::kDependencyNeverSatisfied);
  submit(after_ok(102), {{JobId{99}, JobState::kCompleted}});
  EXPECT_TRUE(runs(102));
  submit(after_ok(103), {{JobId{99}, JobState::kPending}});
  EXPECT_EQ(reason(103), Reason::kDependency);
  submit(job(99, 1));
  end(99);
  EXPECT_TRUE(runs(103));
}

// An object that was made illegal comes back under its number; one that is deleted does not.
TEST_F(Dependencies, GoOnWhileTheOtherJobIsMended) {
  JobRequest held = job(1, 1);
  held.hold = true;
  submit(held);
  submit(waiting(2, {term(DependencyKind::kAfterAny, 1)}));
  driver.step(driver.now(), Forget{JobId{1}, true});
  driver.run_until(driver.now());
  EXPECT_EQ(reason(2), Reason::kDependency);
  submit(held);
  EXPECT_EQ(reason(2), Reason::kDependency);
  driver.step(driver.now(), Forget{JobId{1}, true});
  driver.step(driver.now(), Forget{JobId{1}});
  driver.run_until(driver.now());
  EXPECT_TRUE(runs(2));
}

TEST_F(Dependencies, MakeNoCircles) {
  submit(job(1, 4));
  submit(waiting(2, {term(DependencyKind::kAfterOk, 1)}));
  submit(waiting(3, {term(DependencyKind::kAfterAny, 2)}));
  EXPECT_EQ(driver.scheduler().refused_dependency(waiting(4, {term(DependencyKind::kAfter, 4)})),
            "the job cannot wait for itself (job 4)");
  driver.take_log();
  driver.step(driver.now(), Update{waiting(2, {term(DependencyKind::kAfter, 3)})});
  const std::vector<Decision> log = driver.take_log();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(std::get<CommandRefused>(log[0]).message,
            "job 3 waits for this job, so this job cannot wait for it");
  end(1);
  EXPECT_TRUE(runs(2));
}

// One task may wait for what another one is waited for.
TEST_F(Dependencies, MakeNoCirclesThroughArrays) {
  submit(job(1, 4));
  JobRequest array = job(2, 1);
  array.array.emplace().tasks.insert(0, 3);
  submit(array);
  const JobId third = JobId::of_task(JobId{2}, 3);
  submit(waiting(3, {{.kind = DependencyKind::kAfterOk, .job = third}}));
  array.dependency.terms = {term(DependencyKind::kAfterAny, 3)};
  const auto refusal = [&](JobId id) {
    array.id = id;
    return driver.scheduler().refused_dependency(array);
  };
  const std::string circle = "job 3 waits for this job, so this job cannot wait for it";
  EXPECT_EQ(refusal(JobId{2}), circle);
  EXPECT_EQ(refusal(third), circle);
  EXPECT_EQ(refusal(JobId::of_task(JobId{2}, 1)), std::nullopt);
}

TEST_F(Dependencies, ChangeWhileTheyWait) {
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfterOk, 1)}));
  driver.step(driver.now(), Update{job(2, 1)});
  driver.run_until(driver.now());
  EXPECT_TRUE(runs(2));
}

// One after the other, by number, and behind any other job of the name.
TEST_F(Dependencies, MakeJobsOfOneNameFollowEachOther) {
  const auto named = [](JobRequest request) {
    request.user = "ann";
    request.name = "same";
    return request;
  };
  submit(named(job(1, 1)));
  for (int id = 2; id <= 4; ++id) submit(named(waiting(id, {term(DependencyKind::kSingleton)})));
  EXPECT_EQ(reason(2), Reason::kDependency);
  end(1);
  EXPECT_TRUE(runs(2));
  EXPECT_EQ(reason(3), Reason::kDependency);
  driver.step(driver.now(), Cancel{JobId{3}});
  end(2);
  EXPECT_TRUE(runs(4));
}

// Task 0 is a job of its own before its array is alone, which task 1 takes over. Another job of the
// name comes and goes: task 1 is still the next.
TEST_F(Dependencies, ATaskFollowsALaterOneThatWasAloneWithItsArray) {
  const auto named = [](JobRequest request) {
    request.user = "ann";
    request.name = "same";
    return request;
  };
  const auto task = [](int number) { return JobId::of_task(JobId{2}, number); };
  const auto tell = [&](const Event& event) {
    driver.step(driver.now(), event);
    driver.run_until(driver.now());
  };
  submit(named(job(1, 1)));
  JobRequest array = named(waiting(2, {term(DependencyKind::kSingleton)}));
  array.array.emplace().tasks.insert(0, 1);
  submit(array);
  tell(Hold{JobId{2}});
  tell(Hold{task(0)});
  end(1);
  tell(Hold{task(1)});
  submit(named(job(5, 1)));
  end(5);
  tell(Release{JobId{2}});
  EXPECT_EQ(driver.scheduler().job(task(1), driver.now())->state, JobState::kRunning);
  EXPECT_EQ(driver.scheduler().job(task(0), driver.now())->reason, Reason::kDependency);
  tell(JobGone{task(1)});
  EXPECT_EQ(driver.scheduler().job(task(0), driver.now())->state, JobState::kRunning);
}

// No other job has the new name, so none will leave it.
TEST_F(Dependencies, ASingletonThatIsGivenAnotherNameWaitsForTheJobsOfThat) {
  submit(job(1, 1));
  JobRequest request = waiting(2, {term(DependencyKind::kSingleton)});
  submit(request);
  EXPECT_EQ(reason(2), Reason::kDependency);
  request.name = "other";
  driver.step(driver.now(), Update{request});
  driver.run_until(driver.now());
  EXPECT_TRUE(runs(2));
}

// A job's age counts from the instant on at which it could start.
TEST_F(Dependencies, CostAge) {
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfterOk, 1)}));
  driver.run_until(at(100));
  end(1);
  EXPECT_EQ(driver.view(2).eligible_time, at(100));
}

// The stored states of terms count; how a job ended that is gone is no longer known.
TEST_F(Dependencies, AreTakenUpByANewLeader) {
  const auto restored = [](JobRequest request, std::vector<TermState> terms) {
    JobFacts facts = JobFacts::of(std::move(request));
    facts.terms = std::move(terms);
    return facts;
  };
  const std::vector<DependencyTerm> two{term(DependencyKind::kAfterOk, 1),
                                        term(DependencyKind::kAfterAny, 2)};
  driver.scheduler().restore_from_published(
      at(1),
      {restored(job(3, 4), {}), restored(waiting(4, two), {TermState::kMet}),
       restored(waiting(5, two), {TermState::kOpen, TermState::kOpen}),
       restored(waiting(6, {term(DependencyKind::kAfterOk, 8)}), {}),
       restored(waiting(7, {term(DependencyKind::kAfterOk, 3)}), {})},
      {}, {{JobId{8}, JobState::kCompleted}});
  driver.run_until(at(1));
  EXPECT_TRUE(runs(3));  // all nodes
  EXPECT_EQ(reason(5), Reason::kDependencyNeverSatisfied);
  EXPECT_EQ(reason(7), Reason::kDependency);
  end(3);
  EXPECT_TRUE(runs(4));
  EXPECT_TRUE(runs(6));
  EXPECT_TRUE(runs(7));
}

// A term that was not needed for the start does not matter later: nothing is stored for it.
TEST_F(Dependencies, ATermThatWasNotNeededIsNotSettledByARequeue) {
  JobRequest other = waiting(3, {term(DependencyKind::kSingleton)});
  other.name = "other";
  submit(other);
  submit(job(1, 1));
  submit(waiting(2, {term(DependencyKind::kAfter, 1), term(DependencyKind::kSingleton)}, true));
  ASSERT_TRUE(runs(2));
  end(1);
  driver.take_log();
  driver.step(driver.now(), Requeue{JobId{2}});
  driver.step(driver.now(), JobGone{JobId{2}});
  for (const Decision& decision : driver.take_log()) {
    EXPECT_FALSE(std::holds_alternative<TermsChanged>(decision));
  }
}

}  // namespace
}  // namespace sched::testing
