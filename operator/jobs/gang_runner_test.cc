// The pods of a start, taken together, become events of the scheduler, endings in the wanted
// status, or requests for pods.
#include "operator/jobs/gang_runner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/wellknown.h"
#include "operator/testing/edit_owned.h"
#include "operator/testing/job_parts_fixture.h"

namespace control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class GangRunnerTest : public JobPartsFixture {
 protected:
  // Returns a job of two nodes that is requeued, or not, when it loses one.
  static kube::Job with_requeue(bool requeue) {
    kube::Job job = object("train", 2);
    job.spec.lifecycle.requeue = requeue;
    return job;
  }
  // Both of its pods have run for a minute, and it has observed that.
  JobRecord& ready(const kube::Job& object = with_requeue(true)) {
    JobRecord& job = started(object);
    // Longer ago than any settle time, so one look makes the gang ready.
    for (int slot : {0, 1}) show(job, pod_of(job, slot, now - minutes{1}));
    gangs.run(job);
    EXPECT_TRUE(scheduler.view(job.id)->ready);
    (void)events();
    return job;
  }
  // Removes the pods that were to go.
  static void pods_go(JobRecord& job) {
    while (!job.pods->empty()) job.erase_pod(std::string{job.pods->begin()->first});
  }
};

// The template is read first: the informers keep none.
TEST_F(GangRunnerTest, MissingPodsAreMade) {
  JobRecord& job = started();
  gangs.run(job);
  EXPECT_EQ(asked(), "template-read");
  EXPECT_EQ(events(), 0);
}

// The scheduler gets JobReady when the last pod has settled, and the job is looked at again then.
TEST_F(GangRunnerTest, IsReadyWhenAllPodsHaveSettled) {
  JobRecord& job = started();
  show(job, pod_of(job, 0, now - minutes{1}));
  // The youngest pod decides: pod 0 has settled long ago.
  show(job, pod_of(job, 1, now));
  gangs.run(job);
  EXPECT_EQ(events(), 0);
  EXPECT_FALSE(job.wanted().start_time.has_value());
  ASSERT_GT(job.timer, now);
  // The settle time and a second for the resolution of startedAt, whatever the default is.
  ASSERT_LT(job.timer, now + seconds{10});
  now = job.timer;
  gangs.run(job);
  EXPECT_EQ(events(), 2) << "what it has run so far, and that it is ready";
  EXPECT_TRUE(scheduler.view(job.id)->ready);
  EXPECT_EQ(says(job, kube::kReady), "True Settled");
  EXPECT_EQ(job.wanted().start_time, now);
  EXPECT_NE(job.status.urgency(), WriteUrgency::kClean);
  gangs.run(job);
  EXPECT_EQ(events(), 0) << "once";
}

// It matters to others only where it may stop them. After two minutes it is no longer left to what
// other writes leave.
TEST_F(GangRunnerTest, ReadinessMayBeLateWhereNoJobTakesTurns) {
  JobRecord& job = ready();
  EXPECT_TRUE(job.readiness_is_late());
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kInforms);
  gangs.run(job);
  EXPECT_EQ(job.timer, now + minutes{2});
  now += minutes{2};
  gangs.run(job);
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
}

// A batch Job says how many of its pods are ready when that is stored of its kubegang Job.
TEST_F(GangRunnerTest, ReadinessOfAJobThatAControllerHasMadeIsWrittenAsAState) {
  kube::Job object = with_requeue(true);
  object.metadata.owner_references.push_back({.kind = "Job", .name = "b", .controller = true});
  const JobRecord& job = ready(object);
  EXPECT_TRUE(job.readiness_is_late());
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
}

// So the two are one write.
TEST_F(GangRunnerTest, AnEndDoesNotWaitForReadinessThatIsLate) {
  JobRecord& job = ready();
  job.erase_pod(job.start->slots[1].name);
  gangs.run(job);
  ASSERT_TRUE(job.wanted().ending.has_value());
  EXPECT_EQ(says(job, kube::kReady), "True Settled");
  EXPECT_TRUE(job.status.is_uncommitted());
}

// A node on which another job has been asked to stop needs its agent, and so this job's readiness
// in time.
TEST_F(GangRunnerTest, ReadinessIsNotLateWhereAJobMayHaveToBeStopped) {
  nodes.ask_to_stop("n2", "another");
  const JobRecord& job = ready();
  EXPECT_FALSE(job.readiness_is_late());
  EXPECT_TRUE(job.status.is_uncommitted());
}

// Step by step: 1. the ending is decided; 2. once it is stored, the other pod is deleted; 3. when
// no pod is left and no creation is under way, the job waits again.
TEST_F(GangRunnerTest, AReadyGangThatLosesAPodIsRequeuedOnceAllOfItIsGone) {
  JobRecord& job = ready();
  job.erase_pod(job.start->slots[1].name);
  gangs.run(job);
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kRequeue);
  EXPECT_EQ(job.wanted().ending->reason, "LostMember");
  EXPECT_EQ(says(job, kube::kCompleting), "True Ending");
  EXPECT_EQ(asked(), "") << "the ending is stored first";
  EXPECT_EQ(job.wanted().ending->since, now);
  EXPECT_TRUE(job.status.is_uncommitted());
  EXPECT_EQ(warned(), "Ending");
  gangs.run(job);
  EXPECT_EQ(asked(), "pod-delete");
  EXPECT_EQ(events(), 1) << "the node of the lost pod is clean";
  gangs.run(job);
  EXPECT_EQ(events(), 0) << "it is told once";
  pods_go(job);
  // A creation whose answer is still to come: the pod may exist already.
  edit(job.launch).creating = {1};
  gangs.run(job);
  EXPECT_EQ(events(), 0) << "the answer may bring a pod";
  edit(job.launch).creating.clear();
  gangs.run(job);
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_EQ(job.wanted().restarts, 1);
}

// The same loss, and requeue: false: the verdict is final once no pod is left.
TEST_F(GangRunnerTest, AGangThatMayNotBeRequeuedFailsWithItsNode) {
  JobRecord& job = ready(with_requeue(false));
  // The Node object is deleted, so no kubelet will ever report its pod.
  (void)nodes.observe("n2", nullptr);
  gangs.run(job);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kNodeFail);
  EXPECT_EQ(job.wanted().message, "node n2 is gone");
  pods_go(job);
  gangs.run(job);
  EXPECT_EQ(job.wanted().state, kube::JobState::kNodeFail);
}

// The times of a gang that was ready are the scheduler's: start_time is when it was ready.
TEST_F(GangRunnerTest, IsCompletedWhenAllPodsHaveSucceeded) {
  JobRecord& job = ready();
  const auto start = job.wanted().start_time;
  now += seconds{60};
  // The job ends with its last pod, not with its first.
  for (int slot : {0, 1}) {
    kube::Pod pod = pod_of(job, slot, now - minutes{1});
    pod.status.phase = kube::PodPhase::kSucceeded;
    pod.status.container_statuses[0].state = {
        .terminated =
            kube::ContainerTerminated{.started_at = now - minutes{1}, .finished_at = now}};
    show(job, pod);
    gangs.run(job);
    EXPECT_EQ(job.is_final(), slot == 1);
  }
  EXPECT_EQ(job.wanted().state, kube::JobState::kCompleted);
  EXPECT_EQ(job.wanted().start_time, start) << "not that of its containers";
  EXPECT_EQ(job.wanted().run_time->elapsed, seconds{60});
}

// Pod 0 is the driver; its worker would run forever. The job is completed early, so it has an
// ending of its own, whose exit code is 0 although the worker is killed.
TEST_F(GangRunnerTest, IsCompletedWhenItsSuccessPolicyIsMetAndTheOtherPodsAreGone) {
  kube::Job object = with_requeue(true);
  object.spec.lifecycle.success_policy = kube::SuccessPolicy{{{"0", {}}}};
  JobRecord& job = ready(object);
  kube::Pod driver = pod_of(job, 0, now - minutes{1});
  driver.status.phase = kube::PodPhase::kSucceeded;
  driver.status.container_statuses[0].state = {
      .terminated = kube::ContainerTerminated{.started_at = now - minutes{1}, .finished_at = now}};
  show(job, driver);
  gangs.run(job);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kCompleted);
  EXPECT_EQ(told(), "") << "a good end has none";
  gangs.run(job);
  EXPECT_EQ(asked(), "pod-delete") << "the worker";
  pods_go(job);
  gangs.run(job);
  EXPECT_EQ(job.wanted().state, kube::JobState::kCompleted);
  EXPECT_EQ(job.wanted().exit_code, 0);
  EXPECT_EQ(job.wanted().succeeded_indexes, "0");
}

// 137 alone proves nothing: any SIGKILL gives it. The reason distinguishes a kill for memory.
TEST_F(GangRunnerTest, OutOfMemoryIsAVerdictOfItsOwn) {
  JobRecord& job = ready();
  kube::Pod pod = pod_of(job, 0, now - minutes{1});
  pod.status.phase = kube::PodPhase::kFailed;
  pod.status.container_statuses[0].state = {
      .terminated =
          kube::ContainerTerminated{.exit_code = 137, .reason = "OOMKilled", .finished_at = now}};
  show(job, pod);
  gangs.run(job);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kOutOfMemory);
}

// The first failure decides: a gang has no partial success, so the pod that still runs is deleted.
TEST_F(GangRunnerTest, AFailedContainerEndsTheWholeGangWithItsExitCode) {
  JobRecord& job = ready();
  kube::Pod pod = pod_of(job, 0, now - minutes{1});
  pod.status.phase = kube::PodPhase::kFailed;
  pod.status.container_statuses[0].state = {
      .terminated = kube::ContainerTerminated{.exit_code = 3, .finished_at = now}};
  show(job, pod);
  gangs.run(job);
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kFailed);
  EXPECT_EQ(job.wanted().ending->exit_code, 3);
  gangs.run(job);
  EXPECT_EQ(asked(), "pod-delete") << "the one that still runs";
  pods_go(job);
  gangs.run(job);
  EXPECT_EQ(job.wanted().state, kube::JobState::kFailed);
  EXPECT_EQ(job.wanted().exit_code, 3);
  EXPECT_NE(job.wanted().message.find("failed with exit code 3"), std::string::npos)
      << job.wanted().message;
}

// kubelet refused the pod: the start is undone, and the next one avoids the node.
TEST_F(GangRunnerTest, AStartThatANodeRefusesIsUndoneAndTriedElsewhere) {
  JobRecord& job = started(with_requeue(false));
  kube::Pod refused = pod_of(job, 0, now);
  // Failed without a container: kubelet never admitted it.
  refused.status = {.phase = kube::PodPhase::kFailed, .reason = "OutOfcpu"};
  show(job, refused);
  gangs.run(job);
  EXPECT_EQ(events(), 0) << "its pods go first";
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kRequeue);
  EXPECT_EQ(job.wanted().ending->reason, kube::kStartUndone);
  EXPECT_EQ(told(), "StartUndone");
  EXPECT_EQ(job.wanted().ending->since, now);
  EXPECT_EQ(job.wanted().message, "node n1 refused the pod: OutOfcpu");
  EXPECT_EQ(says(job, kube::kCompleting), "True Ending");
  EXPECT_TRUE(job.status.is_uncommitted());
  pods_go(job);
  gangs.run(job);
  EXPECT_FALSE(job.gang->undo.has_value());
  EXPECT_EQ(job.wanted().state, kube::JobState::kPending);
  EXPECT_EQ(*job.api_refusals, 0);
  EXPECT_EQ(*job.last_end, "node n1 refused the pod: OutOfcpu");
  now += seconds{59};
  scheduler.wake();
  EXPECT_FALSE(job.is_allocated()) << "n1 is avoided for a minute, and n2 alone is too little";
  now += seconds{1};
  scheduler.wake();
  EXPECT_TRUE(job.is_allocated());
}

// So are its times, which the scheduler does not know.
TEST_F(GangRunnerTest, AGangThatEndsBeforeItWasReadyTakesItsTimesFromItsContainers) {
  JobRecord& job = started();
  // They ended at different instants.
  for (int slot : {0, 1}) {
    kube::Pod pod = pod_of(job, slot, now);
    pod.status.phase = kube::PodPhase::kSucceeded;
    pod.status.container_statuses[0].state = {
        .terminated = kube::ContainerTerminated{.started_at = now + seconds{slot},
                                                .finished_at = now + seconds{10 + slot}}};
    show(job, pod);
  }
  now += seconds{20};
  gangs.run(job);
  EXPECT_EQ(job.wanted().state, kube::JobState::kCompleted);
  EXPECT_EQ(job.wanted().start_time, now - seconds{20});
  // From the first start, at 0 s, to the last end, at 11 s; the run time is as of that end.
  EXPECT_EQ(job.wanted().run_time->elapsed, seconds{11});
  EXPECT_EQ(job.wanted().run_time->as_of, now - seconds{9});
}

// The clock of n2 is an hour ahead, so its pod says that it will start then.
TEST_F(GangRunnerTest, APodHasSettledSoonAfterItWasSeenToRunWhateverItsNodesClockSays) {
  JobRecord& job = started();
  show(job, pod_of(job, 0, now - minutes{1}));
  show(job, pod_of(job, 1, now + std::chrono::hours{1}));
  gangs.run(job);
  const base::Duration settle = policy.parameters().settle + kStartedAtResolution;
  EXPECT_EQ(job.timer, now + settle);
  now += settle - seconds{1};
  // Another version of the same pod: it was seen running before.
  show(job, pod_of(job, 1, now + std::chrono::hours{1}));
  gangs.run(job);
  EXPECT_FALSE(job.wanted().start_time.has_value());
  now += seconds{1};
  gangs.run(job);
  EXPECT_EQ(says(job, kube::kReady), "True Settled");
}

// Pod 1 never appears. The deadline counts from the start and is reached to the second.
TEST_F(GangRunnerTest, AStartThatTakesLongerThanItMayIsHeld) {
  kube::Job slow = with_requeue(true);
  slow.spec.lifecycle.start_timeout = minutes{1};
  JobRecord& job = started(slow);
  show(job, pod_of(job, 0, now));
  gangs.run(job);
  EXPECT_EQ(job.timer, now + minutes{1});
  now += minutes{1} - seconds{1};
  gangs.run(job);
  EXPECT_FALSE(job.wanted().ending.has_value());
  now += seconds{1};
  gangs.run(job);
  EXPECT_EQ(job.wanted().ending->reason, kube::kLaunchFailed);
}

// Another job has the row that it gave back when it was suspended. Its start goes on.
TEST_F(GangRunnerTest, AJobThatWaitsForARowIsNotOutOfTime) {
  kube::Job limited = with_requeue(true);
  limited.spec.schedule.time_limit = minutes{1};
  limited.spec.resources.memory_per_node = kube::Bytes{1 << 20};
  kube::Job other = object("other", 2);
  other.spec.resources.memory_per_node = kube::Bytes{1 << 20};
  JobRecord& job = started(limited);
  show(job, pod_of(job, 0, now));
  scheduler.tell(sched::UserSuspend{job.id});
  (void)started(other);
  scheduler.tell(sched::UserResume{job.id});
  ASSERT_TRUE(scheduler.view(job.id)->facts->user_suspended);
  (void)events();
  now += minutes{2};
  gangs.run(job);
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(asked(), "template-read") << "for pod 1";
}

// The first of two pods runs. A clock that is off says nothing about how long.
TEST_F(GangRunnerTest, AJobThatIsNotReadyIsNotOutOfTimeByAClockThatCannotBeTrusted) {
  kube::Job limited = object("train", 2);
  limited.spec.schedule.time_limit = minutes{1};
  JobRecord& job = started(limited);
  show(job, pod_of(job, 0, now));
  ends_by_time = false;
  now += minutes{2};
  gangs.run(job);
  EXPECT_FALSE(job.wanted().ending.has_value());
  ends_by_time = true;
  gangs.run(job);
  EXPECT_TRUE(job.wanted().ending.has_value());
}

// Since when a container has failed to start is remembered, and forgotten when it starts.
TEST_F(GangRunnerTest, AContainerThatCannotStartHasAMinute) {
  JobRecord& job = started(object("train", 1));
  kube::Pod waits = pod_of(job, 0, now);
  waits.status.container_statuses[0].state = {
      .waiting = kube::ContainerWaiting{.reason = "ImagePullBackOff"}};
  show(job, waits);
  gangs.run(job);
  EXPECT_EQ(job.timer, now + kLaunchPatience);
  now += kLaunchPatience - seconds{1};
  gangs.run(job);
  EXPECT_FALSE(job.wanted().ending.has_value());
  show(job, pod_of(job, 0, now));
  gangs.run(job);
  EXPECT_TRUE(job.gang->failing_since.empty());
  show(job, waits);
  gangs.run(job);
  now += kLaunchPatience - seconds{1};
  gangs.run(job);
  EXPECT_FALSE(job.wanted().ending.has_value());
  now += seconds{1};
  gangs.run(job);
  EXPECT_TRUE(job.wanted().ending.has_value());
}

// A webhook has added a probe, which a frozen pod would fail.
TEST_F(GangRunnerTest, AGangThatCannotBeFrozenSaysSoOnce) {
  JobRecord& job = started(object("train", 1));
  kube::Pod changed = pod_of(job, 0, now);
  // The job's template has none, so its pods alone can show it.
  changed.spec.containers[0].liveness_probe = kube::RawJson{nlohmann::json{{"exec", {}}}};
  show(job, changed);
  gangs.run(job);
  EXPECT_TRUE(job.gang->never_frozen);
  EXPECT_EQ(job.status.urgency(), WriteUrgency::kUrgent);
  EXPECT_EQ(says(job, kube::kNeverFrozen), "True ChangedByWebhook");
  EXPECT_EQ(told(), "NeverFrozen");
  gangs.run(job);
  EXPECT_EQ(told(), "");
}

// Each refusal in a row by the API server waits twice as long.
TEST_F(GangRunnerTest, RefusalsByTheApiServerBackOff) {
  JobRecord& job = started(object("train", 1));
  // Each refusal doubles the pause: a quota that is full for hours must not cost a start every
  // second. One second before the end of the pause nothing happens.
  for (const base::Duration wait : {minutes{1}, minutes{2}, minutes{4}}) {
    gangs.undo_start(job, {.api_refused = true, .message = "over the quota"});
    gangs.run(job);
    // No pod was ever made, so the undoing is finished by the first look.
    ASSERT_EQ(job.wanted().state, kube::JobState::kPending);
    EXPECT_EQ(*job.last_end, "over the quota");
    now += wait - seconds{1};
    scheduler.wake();
    EXPECT_FALSE(job.is_allocated()) << wait.count();
    now += seconds{1};
    scheduler.wake();
    ASSERT_TRUE(job.is_allocated()) << wait.count();
  }
  show(job, pod_of(job, 0, now - minutes{1}));
  gangs.run(job);
  EXPECT_EQ(*job.api_refusals, 0) << "it runs";
}

// The API server refuses a status with a longer message: the ending would never be stored, and all
// jobs of the nodes would wait for it.
TEST_F(GangRunnerTest, AnEndingIsStoredHoweverLongItsSentenceIs) {
  const std::string sentence(40'000, 'x');
  JobRecord& undone = started(object("undone", 1));
  gangs.undo_start(undone, {.api_refused = true, .message = sentence});
  EXPECT_EQ(undone.wanted().message.size(), kube::kStatusMessageBytesMax);
  JobRecord& failed = started(object("failed", 1));
  kube::Pod pod = pod_of(failed, 0, now);
  pod.status.phase = kube::PodPhase::kFailed;
  pod.status.reason = "Evicted";
  pod.status.message = sentence;
  show(failed, pod);
  gangs.run(failed);
  ASSERT_TRUE(failed.wanted().ending.has_value());
  EXPECT_EQ(failed.wanted().message.size(), kube::kStatusMessageBytesMax);
}

// The template is at fault: a next try would end in the same way.
TEST_F(GangRunnerTest, AStartThatNoNodeCanMakeIsHeld) {
  JobRecord& job = started(with_requeue(true));
  gangs.undo_start(job, {.hold = true, .message = "bad image"});
  EXPECT_EQ(job.wanted().ending->reason, kube::kLaunchFailed);
  gangs.run(job);
  EXPECT_EQ(scheduler.view(job.id)->reason, sched::Reason::kLaunchFailedRequeuedHeld);
}

// A hold would start it a second time once it is released, which its author has forbidden.
TEST_F(GangRunnerTest, AStartThatNoNodeCanMakeFailsAJobThatIsNotRequeued) {
  JobRecord& job = started(with_requeue(false));
  gangs.undo_start(job, {.hold = true, .message = "bad image"});
  EXPECT_EQ(job.wanted().ending->verdict, kube::EndingVerdict::kFailed);
  EXPECT_EQ(job.wanted().ending->reason, "JobLaunchFailure") << "no program has exited";
  EXPECT_EQ(job.wanted().message, "bad image");
}

}  // namespace
}  // namespace control
