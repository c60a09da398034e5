// Wishes of users become events of the scheduler, each once, or a sentence in Accepted.
#include "operator/jobs/wishes.h"

#include <gtest/gtest.h>

#include "api/kstatus.h"
#include "api/wellknown.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

// Method: one job, the real scheduler, no API server. A test shows the job as the user has it now
// (see(), see_changed()), lets it be heeded, and compares three things: how many events the
// scheduler got, the condition Accepted, and the Kubernetes events for users (told()).
class WishesTest : public JobPartsFixture {
 protected:
  // Two nodes, of which it gets none: it waits.
  JobRecord& submitted() {
    reserve_numbers();
    JobRecord& job = see(object("train", 2));
    wishes.heed(job);
    (void)told();
    (void)events();
    return job;
  }
};

// The submit time is when the user made the object, 5 s ago, not when the number came: numbers that
// are slow must not cost the job its age.
TEST_F(WishesTest, AJobWaitsForItsNumberAndIsSubmittedOnce) {
  kube::Job made = object();
  made.metadata.creation_timestamp = now - std::chrono::seconds{5};
  JobRecord& job = see(made);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
  EXPECT_FALSE(job.wishes->submitted);
  reserve_numbers();
  wishes.heed(job);
  EXPECT_EQ(events(), 1);
  EXPECT_TRUE(job.wishes->submitted);
  EXPECT_EQ(job.wanted().job_id, 1);
  EXPECT_EQ(job.wanted().submit_time, now - std::chrono::seconds{5});
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_EQ(job.wanted().partition, "batch");
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
  EXPECT_EQ(says(job, kube::kReady), "False Queued");
  EXPECT_EQ(says(job, kube::kStalled), "") << "it was never refused";
  EXPECT_EQ(scheduler.view(sched::JobId{1})->state, sched::JobState::kPending);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
}

// The second look at the unchanged job says nothing: an event for each look would fill the
// namespace.
TEST_F(WishesTest, AnIllegalJobIsRefusedOnceAndSubmittedWhenItIsMended) {
  reserve_numbers();
  kube::Job wrong = object();
  wrong.spec.partitions = {"gone"};
  JobRecord& job = see(wrong);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(told(), "Refused");
  EXPECT_EQ(says(job, kube::kAccepted), "False Invalid");
  EXPECT_EQ(says(job, kube::kStalled), "True Invalid");
  EXPECT_EQ(job.wanted().reason, "NotAccepted");
  EXPECT_NE(job.wanted().message.find("gone"), std::string::npos) << job.wanted().message;
  jobs.judge_again(job);
  wishes.heed(job);
  EXPECT_EQ(told(), "") << "that was said";
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.partitions.clear(); }));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
}

// The scheduler never heard of it, and gets its end, since other jobs may wait for it.
TEST_F(WishesTest, AnIllegalJobThatIsCancelledEnds) {
  reserve_numbers();
  kube::Job wrong = object();
  wrong.spec.partitions = {"gone"};
  JobRecord& job = see(wrong);
  wishes.heed(job);
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.cancel = true; }));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().state, kube::JobState::kCancelled);
  EXPECT_EQ(job.wanted().end_time, now);
  EXPECT_EQ(says(job, kube::kFinished), "True Cancelled");
  EXPECT_EQ(says(job, kube::kAccepted), "False Invalid");
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kCommit);
}

// It ends when it is judged, which needs a number.
TEST_F(WishesTest, ACancelledJobWithoutANumberWaitsForIt) {
  kube::Job cancelled = object();
  cancelled.spec.control.cancel = true;
  JobRecord& job = see(cancelled);
  wishes.heed(job);
  EXPECT_FALSE(job.is_final());
  reserve_numbers();
  wishes.heed(job);
  EXPECT_EQ(events(), 2) << "submitted and cancelled";
  EXPECT_EQ(job.wanted().state, kube::JobState::kCancelled);
}

// It was submitted; now the scheduler must no longer know it.
TEST_F(WishesTest, AJobThatWaitsAndBecomesIllegalIsForgotten) {
  JobRecord& job = submitted();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.resources.nodes->min = 3; }));
  EXPECT_FALSE(job.wishes->submitted);
  EXPECT_EQ(events(), 1);
  // The cluster has two nodes, and the job now asks for three.
  EXPECT_FALSE(scheduler.view(job.id).has_value());
}

// It waits until the partition is back.
TEST_F(WishesTest, AJobWhosePartitionWentStaysInTheQueue) {
  JobRecord& job = submitted();
  Changes<kube::Partition> gone;
  // Deleted; the scheduler gets no event here, because only the verdict on the job matters.
  gone[{"", "batch"}] = nullptr;
  policy.observe(gone);
  (void)policy.decide(nodes.objects(), now);
  wishes.judge_waiting();
  wishes.heed(job);
  EXPECT_TRUE(job.wishes->submitted);
  EXPECT_EQ(events(), 0);
}

// One that runs goes on, and its limit can be cut.
TEST_F(WishesTest, AJobThatRunsWithoutItsPartitionTakesChanges) {
  JobRecord& job = started();
  Changes<kube::Partition> gone;
  gone[{"", "batch"}] = nullptr;
  policy.observe(gone);
  (void)policy.decide(nodes.objects(), now);
  wishes.judge_waiting();
  wishes.heed(see_changed(
      job, [](kube::JobSpec& spec) { spec.schedule.time_limit = std::chrono::minutes{5}; }));
  EXPECT_EQ(scheduler.view(job.id)->facts->time_limit, std::chrono::minutes{5});
  EXPECT_EQ(job.wanted().observed_generation, 2);
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.schedule.priority = 0; }));
  EXPECT_EQ(says(job, kube::kAccepted), "False ChangeRefused");
}

// Generation 2 is the changed spec, so its user sees that it has been read.
TEST_F(WishesTest, AChangeOfAWaitingJobIsTold) {
  JobRecord& job = submitted();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.resources.nodes->min = 1; }));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.request().min_nodes, 1);
  EXPECT_EQ(job.wanted().observed_generation, 2);
}

// `basis()` is the spec that is in force. Compared with it, the change that takes the refused one
// back changes nothing, so the job is accepted again.
TEST_F(WishesTest, AChangeThatARunningJobCannotMakeIsRefusedAndLeavesItAsItWas) {
  JobRecord& job = started();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.resources.nodes->min = 1; }));
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(told(), "ChangeRefused");
  EXPECT_EQ(says(job, kube::kAccepted), "False ChangeRefused");
  EXPECT_EQ(job.request().min_nodes, 2);
  EXPECT_EQ(job.basis().resources.nodes->min, 2);
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.resources.nodes->min = 2; }));
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted") << "taken back";
}

// A part that may change is taken, in the same edit or in one that comes after it.
TEST_F(WishesTest, ARefusedChangeTakesNoOtherOneWithIt) {
  JobRecord& job = started();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) {
    spec.resources.nodes->min = 1;
    spec.schedule.time_limit = std::chrono::minutes{5};
  }));
  EXPECT_EQ(says(job, kube::kAccepted), "False ChangeRefused");
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.request().min_nodes, 2);
  EXPECT_EQ(scheduler.view(job.id)->facts->time_limit, std::chrono::minutes{5});
  wishes.heed(see_changed(
      job, [](kube::JobSpec& spec) { spec.schedule.time_limit = std::chrono::minutes{3}; }));
  EXPECT_EQ(says(job, kube::kAccepted), "False ChangeRefused");
  EXPECT_EQ(scheduler.view(job.id)->facts->time_limit, std::chrono::minutes{3});
  jobs.judge_again(job);
  (void)events();
  wishes.heed(job);
  EXPECT_EQ(events(), 0) << "nothing has changed";
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.resources.nodes->min = 2; }));
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted") << "taken back";
  EXPECT_EQ(job.basis(), job.object->spec);
}

// A hold is a property of the request and an event of its own.
TEST_F(WishesTest, HoldsAndReleasesAreToldWithTheChange) {
  JobRecord& job = submitted();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.hold = true; }));
  EXPECT_EQ(scheduler.view(job.id)->reason, sched::Reason::kJobHeldUser);
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.hold = false; }));
  EXPECT_NE(scheduler.view(job.id)->reason, sched::Reason::kJobHeldUser);
  // Twice the changed request and the hold or the release.
  EXPECT_EQ(events(), 4);
}

// A cancel that is carried out is an ending: if the job runs, its pods go first.
TEST_F(WishesTest, CommandsAreToldOnceEach) {
  JobRecord& job = started();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.suspend = true; }));
  EXPECT_EQ(scheduler.view(job.id)->state, sched::JobState::kSuspended);
  EXPECT_EQ(events(), 2) << "the changed request, and the command";
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.suspend = false; }));
  EXPECT_EQ(scheduler.view(job.id)->state, sched::JobState::kRunning);
  EXPECT_EQ(events(), 2);
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.cancel = true; }));
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kCancel);
  EXPECT_EQ(events(), 1);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
}

// Raised by one it is a request; the status says which have been carried out.
TEST_F(WishesTest, EachNumberOfARequeueRequestIsOneRequeue) {
  JobRecord& job = started();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.requeue_request = 1; }));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().observed->requeue_request, 1);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kRequeue);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
}

// The operator holds a job that was requeued too often. Its user releases it by raising a counter;
// a look at the same counter later must not release it again.
TEST_F(WishesTest, AReleaseRequestEndsAHoldByTheSystemOnce) {
  JobRecord& job = submitted();
  // As an earlier leader stored it; the scheduler of this test knows of no hold and takes the
  // release all the same.
  job.wanted_unmarked().held = kube::JobHeld{"JobHoldMaxRequeue"};
  job.status.unmark();
  wishes.heed(see_changed(job, [](kube::JobSpec& spec) { spec.control.release_request = 1; }));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().observed->release_request, 1);
  EXPECT_FALSE(job.wanted().held.has_value());
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
}

// It waits for its finalizers, or in the foreground for its pods.
TEST_F(WishesTest, AJobThatIsBeingDeletedIsCanceledOnce) {
  JobRecord& job = submitted();
  kube::Job going = *job.object;
  going.metadata.deletion_timestamp = now;
  wishes.heed(see(going));
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().state, kube::JobState::kCancelled);
  wishes.heed(job);
  EXPECT_EQ(events(), 0);
}

// A partition that shrinks does not touch jobs that run, and jobs that have ended have nothing to
// lose.
TEST_F(WishesTest, OnlyJobsThatWaitAreJudgedAgain) {
  JobRecord& runs = started(object("runs", 1));
  JobRecord& waits = see(object("waits", 2));
  JobRecord& ended = see(object("ended", 1));
  JobRecord& gone = see(object("gone", 1));
  for (JobRecord* job : {&waits, &ended, &gone}) wishes.heed(*job);
  ended.wanted_unmarked().state = kube::JobState::kCompleted;
  gone.deleted = true;
  (void)jobs.take_touched();
  wishes.judge_waiting();
  EXPECT_EQ(jobs.take_touched(), std::vector<std::string>{waits.uid});
  EXPECT_TRUE(*waits.judge_again);
  for (const JobRecord* job : {&runs, &ended, &gone}) EXPECT_FALSE(*job->judge_again) << job->uid;
}

// The number that the job came with is not a request.
TEST_F(WishesTest, ANewJobHasNoRequestOutstanding) {
  reserve_numbers();
  kube::Job copy = object();
  copy.spec.control.requeue_request = 7;
  JobRecord& job = see(copy);
  wishes.heed(job);
  EXPECT_EQ(events(), 1) << "its submission";
  EXPECT_EQ(job.wanted().observed->requeue_request, 7);
}

// A trial of the job's pods was refused, as by a quota. The job keeps its place in the queue, since
// the quota may be raised; its user hears of it at once.
TEST_F(WishesTest, WhatTheApiServerWouldRefuseIsAWarningThatGoesAway) {
  JobRecord& job = submitted();
  wishes.answered({job.uid, base::Error{base::Code::kPermissionDenied, "over the quota"}});
  EXPECT_EQ(says(job, kube::kAccepted), "True AcceptedWithWarning");
  EXPECT_EQ(told(), "PodsWouldBeRefused");
  EXPECT_TRUE(job.wishes->submitted);
  EXPECT_EQ(events(), 0) << "it only informs";
  wishes.answered({job.uid, base::Status{}});
  EXPECT_EQ(says(job, kube::kAccepted), "True Accepted");
  EXPECT_EQ(told(), "");
}

// The trial came back too late: the real pods are being made.
TEST_F(WishesTest, ARefusedTrialSaysNothingOfAJobThatHasStarted) {
  JobRecord& job = started();
  wishes.answered({job.uid, base::Error{base::Code::kPermissionDenied, "over the quota"}});
  EXPECT_EQ(job.wishes->pod_warning, "");
  EXPECT_EQ(told(), "");
}

// A user wants to look at a job's logs for longer than its time to live.
TEST_F(WishesTest, AFinishedJobMayLiveLonger) {
  JobRecord& job = submitted();
  job.wanted_unmarked().state = kube::JobState::kCompleted;
  JobRecord& again = see_changed(
      job, [](kube::JobSpec& spec) { spec.lifecycle.ttl_after_finished = std::chrono::hours{1}; });
  wishes.heed_finished(again);
  EXPECT_EQ(again.basis().lifecycle.ttl_after_finished, std::chrono::hours{1});
  EXPECT_EQ(says(again, kube::kAccepted), "True Accepted");
  EXPECT_EQ(again.wanted().observed_generation, 2) << "else kstatus takes it for unfinished";
}

// Nothing would come of it, and an edit that is accepted without effect is worse than a refusal.
TEST_F(WishesTest, AChangeThatNoJobCanMakeIsRefusedAlsoAfterItsEnd) {
  JobRecord& job = submitted();
  job.wanted_unmarked().state = kube::JobState::kCompleted;
  JobRecord& again =
      see_changed(job, [](kube::JobSpec& spec) { spec.pod_policy = kube::PodPolicy::kPerTask; });
  wishes.heed_finished(again);
  EXPECT_EQ(says(again, kube::kAccepted), "False ChangeRefused");
  EXPECT_EQ(says(again, kube::kStalled), "True ChangeRefused");
  EXPECT_EQ(events(), 0);
  JobRecord& back = see_changed(again, [](kube::JobSpec& spec) { spec.pod_policy.reset(); });
  wishes.heed_finished(back);
  EXPECT_EQ(says(back, kube::kAccepted), "True Accepted") << "taken back";
  EXPECT_EQ(says(back, kube::kStalled), "False Accepted");
}

// Where jobs take no turns a node may have no agent.
TEST_F(WishesTest, ASuspensionWaitsForTheAgentsOfTheJobsNodes) {
  JobRecord& job = started();
  // n1 has its agent, n2 has lost it.
  nodes.observe_agent("n2", nullptr);
  (void)see_changed(job, [](kube::JobSpec& spec) { spec.control.suspend = true; });
  wishes.heed(job);
  EXPECT_EQ(events(), 1) << "the changed request, but no command";
  EXPECT_TRUE(nodes.needs_timetable("n1") && nodes.needs_agent("n1"));
  EXPECT_EQ(job.wanted().message, "") << "agents may be there in a moment";
  now += std::chrono::seconds{5};
  wishes.heed(job);
  EXPECT_EQ(job.wanted().message, "its suspension waits: node n2 has no agent yet");
  wishes.heed(job);
  EXPECT_EQ(told(), "SuspensionWaits") << "once";
  nodes.observe_agent("n2", ready_agent("n2"));
  wishes.heed(job);
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().message, "");
  EXPECT_EQ(job.wanted().state, kube::JobState::kSuspended);
  (void)see_changed(job, [](kube::JobSpec& spec) { spec.control.suspend = false; });
  wishes.heed(job);
  EXPECT_EQ(job.wanted().state, kube::JobState::kRunning);
  EXPECT_FALSE(nodes.needs_agent("n1"));
}

}  // namespace
}  // namespace control
