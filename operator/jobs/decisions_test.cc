// The scheduler's decisions, as they are left in a job's record and in the books of its nodes.
// (What they make of its status: status_after_test.cc.)
#include "operator/jobs/decisions.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using JobUids = std::set<std::string>;

class DecisionsTest : public JobPartsFixture {};

// Two things are left over from an earlier start, to see that the new one begins without them. The
// slots say which pod belongs on which node; the books of the nodes know the job at once, before
// any pod exists, because timetables wait for its commit.
TEST_F(DecisionsTest, AStartIsACommitPointThatHasItsSlotsAndItsNodes) {
  reserve_numbers();
  JobRecord& job = see(object("train", 2));
  edit(job.last_end) = "of the start before";
  edit(job.gang).failing_since["of the start before"] = now;
  wishes.heed(job);
  job.wanted_unmarked().partition = "batch,other";
  (void)told();
  scheduler.wake();
  EXPECT_TRUE(job.gang->failing_since.empty());
  EXPECT_EQ(job.wanted().partition, "batch") << "of those that it named";
  EXPECT_TRUE(job.status.is_uncommitted());
  EXPECT_EQ(job.wanted().allocation->hostlist, "n[1-2]");
  EXPECT_EQ(job.wanted().starts, 1);
  ASSERT_EQ(job.start->slots.size(), 2U);
  EXPECT_EQ(job.start->slots[1].node, "n2");
  EXPECT_EQ(nodes.jobs_on("n1"), JobUids{job.uid});
  EXPECT_EQ(nodes.jobs_on("n2"), JobUids{job.uid});
  EXPECT_EQ(*job.last_end, "");
  EXPECT_EQ(counters.starts, 1);
  EXPECT_EQ(told(), "") << "its status says it";
}

// It runs now: a refusal by the API server while it waited no longer counts.
TEST_F(DecisionsTest, AStartTakesTheWarningBack) {
  reserve_numbers();
  JobRecord& job = see(object("train", 1));
  wishes.heed(job);
  wishes.answered({job.uid, base::Error{base::Code::kPermissionDenied, "over the quota"}});
  ASSERT_EQ(says(job, kube::kAccepted), "True AcceptedWithWarning");
  scheduler.wake();
  EXPECT_EQ(job.wishes->pod_warning, "");
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
}

// In two halves: between the decision and the end of the last pod the job keeps its slots and
// nodes, because its pods are found by them and still use the nodes.
TEST_F(DecisionsTest, ARequeueForgetsTheStartAndLeavesItsNodes) {
  JobRecord& job = started();
  edit(job.gang).failing_since["pod"] = now;
  scheduler.tell(sched::Requeue{job.id});
  EXPECT_EQ(told(), "Ending");
  EXPECT_EQ(job.start->slots.size(), 2U) << "its pods are still there";
  EXPECT_EQ(nodes.jobs_on("n1"), JobUids{job.uid});
  job.wanted_unmarked().partition = "of the start";
  scheduler.tell(sched::JobGone{.job = job.id});
  EXPECT_EQ(told(), "Requeued");
  EXPECT_EQ(job.wanted().partition, "batch") << "all that it may run in";
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_FALSE(job.is_allocated());
  EXPECT_TRUE(job.start->slots.empty());
  EXPECT_TRUE(job.gang->failing_since.empty());
  EXPECT_TRUE(nodes.jobs_on("n1").empty());
}

// The pod that a webhook gave a probe may be gone before the next leader comes.
TEST_F(DecisionsTest, AStartThatIsRestoredIsNeverFrozenIfThatIsStored) {
  JobRecord& job = started();
  (void)jobs.set_condition(job, WriteUrgency::kUrgent, kube::kNeverFrozen,
                           kube::ConditionStatus::kTrue, "ChangedByWebhook", "a probe");
  job.clear_start();
  gangs.take_slots(job);
  EXPECT_TRUE(job.gang->never_frozen);
}

// The job's pods never ran: it waits again, and that is not a requeue. There is no event for its
// user either, and the counts of restarts stay.
TEST_F(DecisionsTest, AStartThatIsRefusedIsNotARequeue) {
  JobRecord& job = started();
  scheduler.tell(sched::StartRefused{.job = job.id, .avoid_for = std::chrono::minutes{1}});
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_TRUE(job.start->slots.empty());
  EXPECT_EQ(told(), "");
}

// The scheduler's knowledge of its times is shown when it stops, ends and waits again. Between
// these moments it is shown by writes that only inform, which may come late.
TEST_F(DecisionsTest, TimesAreShownWhereTheyStand) {
  JobRecord& job = started();
  scheduler.tell(sched::JobReady{job.id});
  const auto shown = [&] { return job.wanted().run_time->elapsed; };
  now += std::chrono::seconds{60};
  decisions.apply(sched::Suspend{job.id, sched::Reason::kUser});
  EXPECT_EQ(shown(), std::chrono::seconds{60});
  now += std::chrono::seconds{60};
  decisions.apply(sched::Resume{job.id});
  EXPECT_EQ(shown(), std::chrono::seconds{120}) << "the scheduler was told of no suspension";
  now += std::chrono::seconds{60};
  decisions.apply(
      sched::End{.job = job.id, .verdict = sched::EndingVerdict::kTimeout, .kill_at = now});
  // The decisions are applied past the scheduler, so its clock for this job never stopped: each
  // shows the 60 s since the one before.
  EXPECT_EQ(shown(), std::chrono::seconds{180});
}

// squeue --start. A plan that is given up must go, or users would wait for a time that passes by.
TEST_F(DecisionsTest, APlanIsShownAndForgotten) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  const auto n2 = *scheduler.names().find_node("n2");
  decisions.apply(
      sched::Planned{.job = job.id, .start = now + std::chrono::minutes{5}, .nodes = {n2}});
  EXPECT_EQ(job.wanted().expected_start_time, now + std::chrono::minutes{5});
  EXPECT_EQ(job.wanted().planned_nodes, "n2");
  decisions.apply(sched::Planned{.job = job.id, .start = {}, .nodes = {}});
  EXPECT_FALSE(job.wanted().expected_start_time.has_value());
  EXPECT_EQ(job.wanted().planned_nodes, "");
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

// The victim's ending waits for the commit of the one that preempts it, and says who that is. An
// undo of the victim's start was under way; the preemption replaces it, so that the victim is not
// started again in between.
TEST_F(DecisionsTest, AnEndingByPreemptionWaitsForThePreemptor) {
  JobRecord& victim = started(object("victim", 2));
  JobRecord& preemptor = see(object("preemptor", 2));
  wishes.heed(preemptor);
  (void)told();
  edit(victim.gang).undo = StartUndo{};
  decisions.apply(sched::End{.job = victim.id,
                             .verdict = sched::EndingVerdict::kPreempted,
                             .kill_at = now,
                             .preemptor = preemptor.id});
  EXPECT_EQ(*victim.commit_after, preemptor.id);
  EXPECT_FALSE(victim.gang->undo.has_value()) << "another reason ends it now";
  EXPECT_EQ(victim.wanted().ending->by->uid, preemptor.uid);
  EXPECT_TRUE(victim.status.is_uncommitted());
  EXPECT_EQ(told(), "Ending");
}

// For example by a limit on submissions, which another job's end lifts. The record counts as not
// submitted, so the next look submits it again.
TEST_F(DecisionsTest, ASubmissionThatIsTurnedAwayMayBeTriedAgain) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  (void)told();
  (void)events();
  decisions.apply(sched::SubmitRefused{job.id, "too many"});
  EXPECT_FALSE(job.wishes->submitted);
  EXPECT_EQ(events(), 0) << "the scheduler does not know it";
  EXPECT_EQ(says(job, kube::kAccepted), "False Invalid");
  EXPECT_EQ(job.wanted().message, "too many");
  EXPECT_EQ(told(), "Refused");
}

// A turn of the rotation is neither an event nor a change of the base state. Turns come every few
// seconds; an event for each would bury all others.
TEST_F(DecisionsTest, ASuspensionIsToldUnlessItIsATurn) {
  JobRecord& job = started();
  job.status.unmark();
  decisions.apply(sched::Suspend{job.id, sched::Reason::kTimeslice});
  EXPECT_EQ(job.wanted().state, kube::JobState::kSuspended);
  decisions.apply(sched::Resume{job.id});
  EXPECT_EQ(job.wanted().state, kube::JobState::kRunning);
  EXPECT_EQ(told(), "");
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kInforms);
  decisions.apply(sched::Suspend{job.id, sched::Reason::kUser});
  EXPECT_EQ(told(), "Suspended");
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
  decisions.apply(sched::Resume{job.id});
  EXPECT_EQ(told(), "Resumed");
}

// Alerts are made of warnings. A job that was canceled has ended as its user wanted.
TEST_F(DecisionsTest, OnlyAnEndThatWasNotAskedForIsAWarning) {
  JobRecord& failed = started(object("failed", 1));
  JobRecord& completed = started(object("completed", 1));
  scheduler.tell(sched::JobGone{.job = failed.id, .verdict = sched::JobState::kFailed});
  EXPECT_EQ(warned(), "Failed");
  scheduler.tell(sched::JobGone{.job = completed.id, .verdict = sched::JobState::kCompleted});
  EXPECT_EQ(warned(), "");
  JobRecord& canceled = started(object("canceled", 1));
  scheduler.tell(sched::Cancel{canceled.id});
  scheduler.tell(sched::JobGone{.job = canceled.id});
  EXPECT_EQ(canceled.wanted().state, kube::JobState::kCancelled);
  EXPECT_EQ(warned(), "");
}

// The start comes 3 s after the estimate. A start without an estimate is not an estimate of 0 and
// counts nothing.
TEST_F(DecisionsTest, AStartCountsHowFarOffItsEstimateWas) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  job.wanted_unmarked().expected_start_time = now - std::chrono::seconds{3};
  scheduler.wake();
  EXPECT_EQ(counters.start_errors.sum, 3);
  EXPECT_FALSE(job.wanted().expected_start_time.has_value());
  (void)started(object("without"));
  EXPECT_EQ(counters.start_errors.sum, 3);
}

// The eligible time says until when it waits; the sentence says why. Once it waits for resources,
// that is the reason, and the sentence follows it.
TEST_F(DecisionsTest, AJobThatBacksOffSaysWhatTheApiServerSaid) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  edit(job.last_end) = "over the quota";
  decisions.apply(sched::Waits{job.id, sched::Reason::kBeginTime, "may start later"});
  EXPECT_EQ(job.wanted().message, "over the quota");
  decisions.apply(sched::Waits{job.id, sched::Reason::kResources, "needs 2 nodes"});
  EXPECT_EQ(job.wanted().message, "needs 2 nodes; its last start ended: over the quota");
}

// The claim names the nodes whose jobs are ended for it. A new leader must find it, and also that
// it was given up.
TEST_F(DecisionsTest, AClaimIsACommitPointAndSoIsItsEnd) {
  reserve_numbers();
  JobRecord& job = see(object());
  wishes.heed(job);
  sched::Allocation part;
  part.nodes.push_back({.node = *scheduler.names().find_node("n2"), .cpus = 8});
  for (const bool claims : {true, false}) {
    job.status.unmark();
    decisions.apply(sched::Claim{
        .job = job.id, .claim = claims ? std::optional{part} : std::nullopt, .until = now});
    ASSERT_EQ(job.wanted().claim.has_value(), claims);
    EXPECT_TRUE(job.status.is_uncommitted());
    EXPECT_EQ(claims ? job.wanted().claim->hostlist : "n2", "n2");
  }
}

// The job was deleted while the scheduler decided: its decision comes too late and concerns no
// record.
TEST_F(DecisionsTest, ADecisionTouchesItsJobAndOneOfAnUnknownJobIsLeft) {
  JobRecord& job = started();
  (void)jobs.take_touched();
  decisions.apply(sched::CommandRefused{job.id, "not now"});
  EXPECT_EQ(jobs.take_touched(), std::vector<std::string>{job.uid});
  EXPECT_EQ(told(), "RequestRefused");
  EXPECT_EQ(job.wanted().message, "not now");
  decisions.apply(sched::CommandRefused{sched::JobId{99}, "not now"});
  EXPECT_TRUE(jobs.take_touched().empty());
}

}  // namespace
}  // namespace control
