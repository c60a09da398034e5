// What the scheduler's decisions leave in the record of a job and in the books of its nodes.
// (What they make of its status: status_after_test.cc.)
#include "operator/jobs/decisions.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using JobUids = std::set<std::string>;

class DecisionsTest : public JobPartsFixture {};

TEST_F(DecisionsTest, AStartIsACommitPointThatHasItsSlotsAndItsNodes) {
  reserve_numbers();
  JobRecord& job = see(object("train", 2));
  job.start_refusal = "of the start before";
  wishes.heed(job);
  (void)told();
  scheduler.wake();
  EXPECT_TRUE(job.status.is_uncommitted());
  EXPECT_EQ(job.wanted().allocation->hostlist, "n[1-2]");
  EXPECT_EQ(job.wanted().starts, 1);
  ASSERT_EQ(job.start.slots.size(), 2U);
  EXPECT_EQ(job.start.slots[1].node, "n2");
  EXPECT_EQ(nodes.jobs_on("n1"), JobUids{job.uid});
  EXPECT_EQ(nodes.jobs_on("n2"), JobUids{job.uid});
  EXPECT_EQ(job.start_refusal, "");
  EXPECT_EQ(counters.starts, 1);
  EXPECT_EQ(told(), "Started");
}

// It runs now: what the API server would have refused while it waited does not count any more.
TEST_F(DecisionsTest, AStartTakesTheWarningBack) {
  reserve_numbers();
  JobRecord& job = see(object("train", 1));
  wishes.heed(job);
  wishes.answered({job.uid, base::Error{base::Code::kPermissionDenied, "over the quota"}});
  ASSERT_EQ(says(job, kube::kAccepted), "True AcceptedWithWarning");
  scheduler.wake();
  EXPECT_EQ(job.pod_warning, "");
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
}

TEST_F(DecisionsTest, ARequeueForgetsTheStartAndLeavesItsNodes) {
  JobRecord& job = started();
  job.start.failing_since["pod"] = now;
  scheduler.tell(sched::Requeue{job.id});
  EXPECT_EQ(told(), "Ending");
  EXPECT_EQ(job.start.slots.size(), 2U) << "its pods are still there";
  EXPECT_EQ(nodes.jobs_on("n1"), JobUids{job.uid});
  scheduler.tell(sched::JobGone{.job = job.id});
  EXPECT_EQ(told(), "Requeued");
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_FALSE(job.is_allocated());
  EXPECT_TRUE(job.start.slots.empty());
  EXPECT_TRUE(job.start.failing_since.empty());
  EXPECT_TRUE(nodes.jobs_on("n1").empty());
}

// The pods of the last start are looked for until they are gone, so a final state keeps its slots.
TEST_F(DecisionsTest, AFinalStateLeavesTheNodesAndIsTold) {
  JobRecord& job = started();
  scheduler.tell(
      sched::JobGone{.job = job.id, .verdict = sched::JobState::kFailed, .exit_code = 3});
  EXPECT_TRUE(job.is_final());
  EXPECT_EQ(job.wanted().exit_code, 3);
  EXPECT_TRUE(job.status.is_uncommitted());
  EXPECT_TRUE(nodes.jobs_on("n1").empty());
  EXPECT_EQ(told(), "Failed");
}

// The victim's ending waits for the commit of the one that preempts it, and says who that is.
TEST_F(DecisionsTest, AnEndingByPreemptionWaitsForThePreemptor) {
  JobRecord& victim = started(object("victim", 2));
  JobRecord& preemptor = see(object("preemptor", 2));
  wishes.heed(preemptor);
  (void)told();
  victim.start.undo = StartUndo{};
  decisions.apply(sched::End{.job = victim.id,
                             .verdict = sched::EndingVerdict::kPreempted,
                             .kill_at = now,
                             .preemptor = preemptor.id});
  EXPECT_EQ(victim.start.commit_after, preemptor.id);
  EXPECT_FALSE(victim.start.undo.has_value()) << "another reason ends it now";
  EXPECT_EQ(victim.wanted().ending->by->uid, preemptor.uid);
  EXPECT_TRUE(victim.status.is_uncommitted());
  EXPECT_EQ(told(), "Ending");
}

TEST_F(DecisionsTest, ASubmissionThatIsTurnedAwayMayBeTriedAgain) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  (void)told();
  decisions.apply(sched::SubmitRefused{job.id, "too many"});
  EXPECT_FALSE(job.submitted);
  EXPECT_EQ(says(job, kube::kAccepted), "False Invalid");
  EXPECT_EQ(job.wanted().message, "too many");
  EXPECT_EQ(told(), "Refused");
}

TEST_F(DecisionsTest, ADecisionTouchesItsJobAndOneOfAnUnknownJobIsLeft) {
  JobRecord& job = started();
  (void)jobs.take_touched();
  decisions.apply(sched::CommandRefused{job.id, "not now"});
  EXPECT_EQ(jobs.take_touched(), std::vector<std::string>{job.uid});
  EXPECT_EQ(told(), "RequestRefused");
  decisions.apply(sched::CommandRefused{sched::JobId{99}, "not now"});
  EXPECT_TRUE(jobs.take_touched().empty());
}

}  // namespace
}  // namespace control
