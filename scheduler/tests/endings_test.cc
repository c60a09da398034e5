// Requeues, cancellations, suspends, time limits and deadlines of jobs that have started (2.2, 13).
#include "scheduler/testing/rule_test.h"

#include <memory>

namespace sched::testing {
namespace {

using Endings = RuleTest;

// T5: a cancel counts also while the job ends for a requeue.
TEST_F(Endings, T5_ACancelDuringARequeueStands) {
  const auto one = nodes("n", 1, 1);
  preempt_by_tier(PreemptMode::kRequeue, one);
  c_.partitions[0].grace_time = std::chrono::minutes{1};
  begin(one);
  tell(0, Submit{job(1, 1, "low")});
  tell(10, Submit{job(2, 1, "high")});
  // It has its minute of grace, and would come back after it.
  EXPECT_EQ(ends().size(), 1U);
  tell(20, Cancel{JobId{1}});
  tell(30, JobGone{.job = JobId{1}, .verdict = JobState::kCancelled});
  EXPECT_EQ(state(1), JobState::kCancelled);
  EXPECT_EQ(state(2), JobState::kRunning);
}

// 13.5 and 7.7 step 2d: in no partition it would wait forever.
TEST_F(Endings, R13_5_NoRequeueWithoutAPartition) {
  const auto one = nodes("n", 1, 1);
  preempt_by_tier(PreemptMode::kRequeue, one);
  begin(one);
  tell(0, Submit{job(1, 1, "mid")});
  // The job runs on in a partition that does not exist any longer, and its user asks for a requeue.
  std::erase_if(c_.partitions, [](const PartitionConfig& each) { return each.name == "mid"; });
  tell(1, Configure{std::make_shared<const Configuration>(c_)});
  tell(2, Requeue{JobId{1}});
  EXPECT_TRUE(ends().empty());
  EXPECT_EQ(state(1), JobState::kRunning);
}

// R2.1: a job that ends is charged no longer, and does not begin to be when the gang is turned off.
TEST_F(Endings, R2_1_AnEndIsNotChargedWhenTheGangIsTurnedOff) {
  const auto one = nodes("n", 1, 1);
  Configuration c = gang_linear({partition("p", one)});
  Driver driver{c, one};
  driver.ends_at_once = false;
  RuleTest::submit(driver, 0, job(1, 1));
  driver.step(at(10), Cancel{JobId{1}});
  c.cluster.gang = false;
  driver.step(at(20), Configure{std::make_shared<const Configuration>(c)});
  driver.run_until(at(30));
  EXPECT_EQ(driver.view(1).run_time, seconds(10));
}

// R2.1: a node takes new jobs as soon as nothing is left there of the job that ends, whatever its
// other nodes still have.
TEST_F(Endings, R2_1_ANodeIsFreeWhenItIsClean) {
  const auto two = nodes("n", 1, 2);
  add("p", two);
  begin(two);
  tell(0, Submit{job(1, 2)});
  tell(1, Submit{job(2, 1)});
  tell(2, Submit{job(3, 1)});
  tell(3, NodesClean{JobId{1}, {"n1"}});  // of no meaning: it does not end
  tell(4, Cancel{JobId{1}});
  EXPECT_EQ(state(2), JobState::kPending);
  tell(5, NodesClean{JobId{1}, {"n2", "elsewhere"}});
  EXPECT_EQ(state(2), JobState::kRunning);
  EXPECT_EQ(state(3), JobState::kPending);
  tell(6, NodesClean{JobId{1}, {"n2", "n2"}});
  EXPECT_EQ(state(3), JobState::kPending) << "n1 is not clean";
  tell(7, JobGone{.job = JobId{1}, .verdict = JobState::kCancelled});
  EXPECT_EQ(state(3), JobState::kRunning);
}

// R2.1 and 7.8: in its grace time a job has its cores, also where it no longer has processes.
TEST_F(Endings, R2_1_ACleanNodeWaitsForTheGraceTime) {
  const auto two = nodes("n", 1, 2);
  preempt_by_tier(PreemptMode::kCancel, two);
  c_.partitions[0].grace_time = std::chrono::minutes{1};
  begin(two);
  tell(0, Submit{job(1, 2, "low")});
  tell(10, Submit{job(2, 1, "high")});
  ASSERT_EQ(ends().size(), 1U);
  tell(20, NodesClean{JobId{1}, {"n1", "n2"}});
  EXPECT_EQ(state(2), JobState::kPending);
  tell(70, Wake{});
  EXPECT_EQ(state(2), JobState::kRunning);
}

// T10 and T7: a requeue gives no priority back.
TEST_F(Endings, T10_ASuspendedJobIsHeldAfterItsRequeue) {
  const auto one = nodes("n", 1, 1);
  add("p", one);
  c_.cluster.queue.requeue_delay = base::Duration{0};
  begin(one);
  tell(0, Submit{job(1, 1)});
  tell(1, UserSuspend{JobId{1}});
  tell(2, Requeue{JobId{1}});
  tell(3, JobGone{.job = JobId{1}, .verdict = JobState::kCancelled});
  // Long after any delay: the job is held, and does not only wait.
  tell(200, Wake{});
  EXPECT_EQ(state(1), JobState::kPending);
  EXPECT_EQ(driver_->view(1).reason, Reason::kJobHeldUser);
  tell(201, UserResume{JobId{1}});
  EXPECT_EQ(state(1), JobState::kRunning);
}

// T10: a suspend ends a resume that found no room yet.
TEST_F(Endings, T10_ASuspendTakesAResumeBackThatStillWaits) {
  const auto one = nodes("n", 1, 1);
  Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
  c.partitions.pop_back();
  Driver driver{c, one};
  submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
  driver.step(at(1), UserSuspend{JobId{1}});
  // Job 2 takes the cores that job 1 gave back, so the resume at 3 must wait.
  submit(driver, 2, with_tasks(job(2, 1, "low"), 4));
  driver.step(at(3), UserResume{JobId{1}});
  driver.run_until(at(3));
  ASSERT_EQ(driver.state(1), "S(1)");
  driver.step(at(4), UserSuspend{JobId{1}});
  driver.step(at(5), JobGone{JobId{2}});
  driver.run_until(at(10));
  EXPECT_EQ(driver.state(1), "S(1)");
}

// 13.3: it ends with the deadline. Job 2 starts at 100, and 50 of its 100 s are left until 150.
TEST_F(Endings, R13_3_TheLimitIsShortenedToTheDeadline) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  submit(driver, 0, job(1, 1));
  JobRequest request = job(2, 1);
  request.time_limit = seconds(100);
  request.time_min = seconds(20);
  request.deadline = at(150);
  submit(driver, 1, request);
  driver.step(at(100), JobGone{JobId{1}});
  driver.run_until(at(149));
  EXPECT_EQ(driver.state(2), "R(49)");
  driver.run_until(at(150));
  EXPECT_EQ(state(driver, 2), JobState::kDeadline);
}

// 13.3: a deadline is wall time, for a job that takes turns, that its user has suspended, and that
// is not ready.
TEST_F(Endings, R13_3_ADeadlineIsWallTime) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  for (const int id : {1, 2}) {
    JobRequest request = job(id, 1);
    request.deadline = at(100);
    submit(driver, 0, request);
  }
  driver.step(at(10), UserSuspend{JobId{2}});
  driver.ready_after.reset();
  JobRequest third = job(3, 1);
  third.deadline = at(90);
  submit(driver, 20, third);
  driver.run_until(at(89));
  EXPECT_TRUE(ends(driver).empty());
  driver.run_until(at(90));
  EXPECT_EQ(state(driver, 3), JobState::kDeadline);
  driver.run_until(at(100));
  EXPECT_EQ(state(driver, 1), JobState::kDeadline);
  EXPECT_EQ(state(driver, 2), JobState::kDeadline);
}

// 7.8: a deadline comes within a grace time, too.
TEST_F(Endings, R13_3_AGraceTimeEndsWithTheDeadline) {
  const auto one = nodes("n", 1, 1);
  Configuration c = two_tiers(one, PreemptMode::kCancel, 1);
  c.partitions[0].grace_time = std::chrono::minutes{10};
  Driver driver{c, one};
  driver.ends_at_once = false;
  JobRequest low = with_tasks(job(1, 1, "low"), 4);
  low.deadline = at(100);
  submit(driver, 0, low);
  submit(driver, 10, with_tasks(job(2, 1, "high"), 4));
  const std::vector<End> ended = ends(driver);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].kill_at, at(100) + c.cluster.kill_wait);
}

// T5: a cancel ends a grace time now, whatever was to become of the job.
TEST_F(Endings, T5_ACancelEndsAGraceTime) {
  for (const PreemptMode mode : {PreemptMode::kCancel, PreemptMode::kRequeue}) {
    const auto one = nodes("n", 1, 1);
    Configuration c = two_tiers(one, mode, 1);
    c.partitions[0].grace_time = std::chrono::minutes{10};
    Driver driver{c, one};
    driver.ends_at_once = false;
    submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit(driver, 10, with_tasks(job(2, 1, "high"), 4));
    ASSERT_EQ(ends(driver).size(), 1U);
    driver.step(at(20), Cancel{JobId{1}});
    const std::vector<End> ended = ends(driver);
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].verdict, EndingVerdict::kCancelled);
    EXPECT_EQ(ended[0].kill_at, at(20) + c.cluster.kill_wait);
    EXPECT_TRUE(driver.view(1).completing);
    driver.step(at(21), Cancel{JobId{1}});
    EXPECT_TRUE(ends(driver).empty());
    driver.step(at(22), JobGone{.job = JobId{1}, .verdict = JobState::kFailed});
    EXPECT_EQ(state(driver, 1), JobState::kCancelled);
  }
}

// 7.8 (recorded: rnd_qos_333): a victim that ends by itself in its grace time has completed; one
// that fails then, as SIGTERM makes most programs do, is requeued.
TEST_F(Endings, R7_8_AVictimThatSucceedsInItsGraceTimeHasCompleted) {
  for (const JobState verdict : {JobState::kCompleted, JobState::kFailed}) {
    const auto one = nodes("n", 1, 1);
    Configuration c = two_tiers(one, PreemptMode::kRequeue, 1);
    c.partitions[0].grace_time = std::chrono::minutes{10};
    Driver driver{c, one};
    driver.ends_at_once = false;
    submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
    submit(driver, 10, with_tasks(job(2, 1, "high"), 4));
    ASSERT_EQ(ends(driver).size(), 1U);
    driver.step(at(20), JobGone{.job = JobId{1}, .verdict = verdict});
    EXPECT_EQ(state(driver, 1),
              verdict == JobState::kCompleted ? JobState::kCompleted : JobState::kPending);
  }
}

// An ending that was decided is final, also if no pod of the start ever came to life.
TEST_F(Endings, T5_ARefusedStartDoesNotUndoACancel) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  driver.ready_after.reset();
  driver.ends_at_once = false;
  submit(driver, 0, job(1, 1));
  driver.step(at(1), Cancel{JobId{1}});
  driver.step(at(2), StartRefused{.job = JobId{1}});
  EXPECT_EQ(state(driver, 1), JobState::kCancelled);
}

// T11: smaller jobs do not keep a resumed job from its nodes.
TEST_F(Endings, T11_AResumedJobDoesNotStarve) {
  const auto one = nodes("n", 1, 1);
  Configuration c = two_tiers(one, PreemptMode::kSuspend, 1);
  c.partitions.pop_back();
  c.cluster.gang = false;
  c.cluster.preempt_type = PreemptType::kNone;
  c.cluster.preempt_mode = PreemptMode::kOff;
  c.cluster.backfill.interval = seconds(0.25);
  Driver driver{c, one};
  submit(driver, 0, with_tasks(job(1, 1, "low"), 4));
  driver.step(at(1), UserSuspend{JobId{1}});
  submit(driver, 2, with_tasks(job(2, 1, "low"), 1));
  submit(driver, 3, with_tasks(job(3, 1, "low"), 1));
  driver.step(at(4), UserResume{JobId{1}});
  submit(driver, 5, with_tasks(job(4, 1, "low"), 1));
  driver.run_until(at(5.9));  // passes of the backfill, too
  EXPECT_EQ(state(driver, 4), JobState::kPending) << "the node is kept for job 1";
  driver.step(at(6), JobGone{.job = JobId{2}});
  driver.run_until(at(6));
  EXPECT_EQ(state(driver, 4), JobState::kPending);
  driver.step(at(7), JobGone{.job = JobId{3}});
  driver.run_until(at(7));
  EXPECT_EQ(state(driver, 1), JobState::kRunning);
  driver.step(at(8), UserSuspend{JobId{1}});
  driver.run_until(at(8));
  EXPECT_EQ(state(driver, 4), JobState::kRunning) << "it wants its node no longer";
}

// 13.3: it is over when no pass comes to the job, either: after 50 − 30 = 20 it cannot make it.
TEST_F(Endings, R13_3_TheDeadlineWakesTheScheduler) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  submit(driver, 0, job(1, 1));
  submit(driver, 0, job(2, 1));
  JobRequest request = job(3, 1);
  request.time_limit = seconds(30);
  request.deadline = at(50);
  submit(driver, 1, request);
  request.id = JobId{4};
  request.begin_time = at(40);
  submit(driver, 1, request);
  driver.run_until(at(20));
  EXPECT_EQ(state(driver, 3), JobState::kPending);
  driver.run_until(at(21));
  EXPECT_EQ(state(driver, 3), JobState::kDeadline);
  EXPECT_EQ(state(driver, 4), JobState::kDeadline) << "it does not wait for its begin time";
  EXPECT_EQ(driver.scheduler().check_invariants(), "");
}

// T7: the exit code is that of the last start. After a start that was refused there is none.
TEST_F(Endings, TheExitCodeOfAnEarlierStartIsForgotten) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  driver.ready_after.reset();
  submit(driver, 0, job(1, 1));
  driver.step(at(1), JobEnding{JobId{1}, JobState::kNodeFail, 7});
  driver.step(at(2), JobGone{JobId{1}});
  driver.run_until(at(3));
  ASSERT_NE(driver.view(1).allocation, nullptr);
  driver.step(at(4), StartRefused{.job = JobId{1}, .hold = true});
  std::vector<Decision> decisions;
  driver.on_decisions = [&](const std::vector<Decision>& all) {
    decisions.insert(decisions.end(), all.begin(), all.end());
  };
  driver.step(at(5), Cancel{JobId{1}});
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(std::get<StateChange>(decisions[0]).exit_code, 0);
}

// 13.3: neither can a job make it that no nodes can ever hold.
TEST_F(Endings, R13_3_ADeadlineEndsAJobThatCannotRun) {
  const auto one = nodes("n", 1, 1);
  Driver driver{whole_nodes({closed("p", one)}), one};
  JobRequest request = job(1, 2);
  request.deadline = at(50);
  submit(driver, 0, request);
  ASSERT_EQ(driver.view(1).reason, Reason::kBadConstraints);
  driver.run_until(at(51));
  EXPECT_EQ(state(driver, 1), JobState::kDeadline);
}

// R13.21: a job whose turn comes early, because its rivals have ended, times out earlier too. Job 1
// ran from 0 to 60 and has 10 s left, which are over at 85.
TEST_F(Endings, R13_21_TheLimitOfASlicedJobIsExact) {
  const auto one = nodes("n", 1, 1);
  Driver driver{gang_linear({partition("p", one)}), one};
  JobRequest limited = job(1, 1);
  limited.time_limit = seconds(70);
  submit(driver, 0, limited);
  submit(driver, 1, job(2, 1));
  submit(driver, 65, job(3, 1));  // an event while job 1 is stopped, from 60 on
  ASSERT_EQ(driver.state(1), "S(60)");
  driver.run_until(at(72));  // past 70, when it would have been over
  driver.step(at(75), Cancel{JobId{3}});
  driver.step(at(75), JobGone{JobId{2}});
  driver.run_until(at(84));
  EXPECT_EQ(driver.state(1), "R(69)");
  driver.run_until(at(85));
  EXPECT_EQ(state(driver, 1), JobState::kTimeout);
}

}  // namespace
}  // namespace sched::testing
