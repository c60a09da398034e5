// Tests of what the scheduler's decisions add to the totals.
#include "operator/jobs/job_totals.h"

#include <gtest/gtest.h>

#include <chrono>

#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using std::chrono::minutes;
using Counts = std::map<std::string, std::int64_t>;

class JobTotalsTest : public JobPartsFixture {
 protected:
  // Adds a job of two CPUs that ran for five minutes.
  JobRecord& ran(const std::string& name) {
    JobRecord& job = started(object(name, 1));
    job.wanted_unmarked().allocation->cpus = 2;
    job.wanted_unmarked().run_time = kube::RunTime{.elapsed = minutes{5}, .as_of = now};
    return job;
  }
};

TEST_F(JobTotalsTest, AWaitIsFromWhenTheJobMightStart) {
  JobRecord& job = ran("train");
  const JobTotals::Series series{.partition = job.wanted().partition, .qos = ""};
  const JobTotals before = totals;
  job.wanted_unmarked().submit_time = now - minutes{60};
  job.wanted_unmarked().eligible_time = now - minutes{10};
  totals.started(job, now);
  EXPECT_EQ(totals.waits().at(series).sum, 600 + before.waits().at(series).sum);
  EXPECT_GT(totals.version(), before.version());
  job.wanted_unmarked().starts = 2;
  totals.started(job, now + minutes{60});
  EXPECT_EQ(totals.waits().at(series).sum, 600 + before.waits().at(series).sum)
      << "the first start alone";
}

TEST_F(JobTotalsTest, ARunIsCountedWhenItsJobLeavesItsNodes) {
  JobRecord& job = ran("train");
  totals.changed(job, {.job = job.id, .state = sched::JobState::kFailed, .reason = {}}, "physics");
  EXPECT_EQ(totals.ends(), (Counts{{"Failed", 1}}));
  EXPECT_EQ(totals.requeues(), Counts{});
  EXPECT_EQ(totals.runs().begin()->second.sum, 300);
  EXPECT_EQ(totals.account_cpu_seconds().at("physics"), 600);
  // One that has never run.
  job.wanted_unmarked().allocation.reset();
  totals.changed(job, {.job = job.id, .state = sched::JobState::kCancelled, .reason = {}}, "");
  EXPECT_EQ(totals.ends(), (Counts{{"Cancelled", 1}, {"Failed", 1}}));
  EXPECT_EQ(totals.runs().begin()->second.sum, 300);
}

TEST_F(JobTotalsTest, ARequeueHasACause) {
  JobRecord& job = ran("train");
  const auto requeue = [&](int node_failures) {
    sched::StateChange change{.job = job.id, .state = sched::JobState::kPending, .reason = {}};
    change.restarts = 1;
    change.node_failures = node_failures;
    totals.changed(job, change, "");
  };
  requeue(0);
  requeue(1);
  job.wanted_unmarked().ending.emplace();
  requeue(0);
  job.wanted_unmarked().ending->by.emplace();
  requeue(0);
  EXPECT_EQ(totals.requeues(), (Counts{{"node", 1}, {"pod", 1}, {"preemption", 1}, {"user", 1}}));
  EXPECT_EQ(totals.ends(), Counts{});
}

// A start that is undone is not a restart, so nothing has run.
TEST_F(JobTotalsTest, AStartThatIsUndoneHasNotRun) {
  JobRecord& job = ran("train");
  totals.changed(job, {.job = job.id, .state = sched::JobState::kPending, .reason = {}}, "");
  EXPECT_TRUE(totals.runs().empty());
  EXPECT_TRUE(totals.requeues().empty());
}

// An end is decided once more when its user cancels the victim; it was preempted once.
TEST_F(JobTotalsTest, AVictimLosesWhatItHasRun) {
  JobRecord& job = ran("train");
  sched::End end{.job = job.id, .verdict = sched::EndingVerdict::kRequeue, .kill_at = now};
  totals.ending(job, end);
  EXPECT_EQ(totals.preemptions(), Counts{}) << "nobody preempts it";
  end.preemptor = sched::JobId{99};
  totals.ending(job, end);
  job.wanted_unmarked().ending.emplace();
  totals.ending(job, end);
  EXPECT_EQ(totals.preemptions(), (Counts{{"requeue", 1}}));
  EXPECT_EQ(totals.preempted_cpu_seconds(), 600);
  totals.suspended(sched::Reason::kTimeslice);
  totals.suspended(sched::Reason::kPreempted);
  EXPECT_EQ(totals.preemptions(), (Counts{{"requeue", 1}, {"suspend", 1}}));
}

}  // namespace
}  // namespace control
