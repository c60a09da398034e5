// Tests of which pods the policy takes under control, and of their states when they, or their
// cgroups, come and go.
#include "node-agent/policy/node_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "node-agent/testing/node_policy_fixture.h"

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three seconds are longer than a pod settles and longer than the audit's period.
TEST_F(NodePolicyTest, DoesNotTouchAPodThatIsNotListed) {
  node_.add_pod("a", "a");
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(seconds{3});
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_THAT(journaled(), IsEmpty());
}

// A pod that is frozen while its runtime still starts a container cannot start it, and kubelet
// would give up. The settling time counts from the start of the last container.
TEST_F(NodePolicyTest, WaitsUntilEveryContainerHasSettled) {
  node_.add_pod("a", "a");
  kube::Pod& pod = node_.pod("a");
  pod.spec.init_containers = {{.name = "init"}};
  pod.status.container_statuses.clear();
  node_.publish(node_.timetable({"a"}, {{}}));
  node_.run_for(seconds{10});  // still in its init container
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_EQ(node_.view("a").standing, PodStanding::kSettling);

  kube::ContainerStatus init{.name = "init"};
  init.state.terminated = kube::ContainerTerminated{};
  pod.status.init_container_statuses = {init};
  kube::ContainerStatus main{.name = "main"};
  const base::Instant started = node_.clock().wall();
  main.state.running = kube::ContainerRunning{.started_at = started};
  pod.status.container_statuses = {main};
  // 2 s and the whole second of startedAt.
  node_.run_for(milliseconds{2900});
  EXPECT_THAT(node_.log(), IsEmpty());
  node_.run_for(milliseconds{200});
  EXPECT_FALSE(node_.runs("a"));
}

// The clock of the node was set back, so by startedAt both have yet to start. No timetable lists
// the first one until the second comes, and it has been seen to run all the time.
TEST_F(NodePolicyTest, APodThatRanUnlistedHasSettledAlsoIfTheClockWasSetBack) {
  const auto add = [&](const std::string& name) {
    const base::Instant started = node_.clock().wall() + std::chrono::hours{1};
    node_.add_pod(name, name).status.container_statuses[0].state.running =
        kube::ContainerRunning{.started_at = started};
  };
  add("a");
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(seconds{4});
  add("b");
  node_.publish(node_.timetable({"a", "b"}, {{}}));
  node_.step();
  EXPECT_FALSE(node_.runs("a"));
  node_.run_for(milliseconds{2900});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(milliseconds{200});
  EXPECT_FALSE(node_.runs("b"));
}

// kubectl debug: the container could not start in a frozen cgroup. An ephemeral container that has
// ended does not thaw the pod again.
TEST_F(NodePolicyTest, ThawsAPodForAnEphemeralContainerUntilThatHasSettled) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  kube::ContainerStatus debugger{.name = "debugger"};
  debugger.state.waiting = kube::ContainerWaiting{.reason = "ContainerCreating"};
  node_.pod("b").status.ephemeral_container_statuses = {debugger};
  node_.run_for(seconds{10});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kSettling);
  debugger.state = {.running = kube::ContainerRunning{.started_at = node_.clock().wall()}};
  node_.pod("b").status.ephemeral_container_statuses = {debugger};
  node_.run_for(milliseconds{2900});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
  debugger.state = {.terminated = kube::ContainerTerminated{}};
  node_.pod("b").status.ephemeral_container_statuses = {debugger};
  node_.run_for(milliseconds{200});
  EXPECT_FALSE(node_.runs("b"));
}

// kubectl debug with an image that does not exist: kubelet tries to pull it for as long as the pod
// lives, and Kubernetes never removes the container. The pod runs beside the other gang for 2 min,
// and then takes its turns. Otherwise users who may add such containers would stay out of them for
// as long as there is a container to add: each of the others below would have been another 2 min.
TEST_F(NodePolicyTest, EphemeralContainersThatNeverStartThawAPodForOneBoundedTime) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  auto& containers = node_.pod("b").status.ephemeral_container_statuses;
  kube::ContainerStatus missing{.name = "missing"};
  missing.state.waiting = kube::ContainerWaiting{.reason = "ImagePullBackOff"};
  containers = {missing};
  node_.run_for(seconds{119});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kControlled);
  for (int i = 0; i < 5; ++i) {
    containers.push_back(missing);
    containers.back().name += std::to_string(i);
    node_.run_for(seconds{1});
    EXPECT_FALSE(node_.runs("b")) << i;
    node_.run_for(minutes{3});
    EXPECT_FALSE(node_.runs("b")) << i;
  }
  // One that starts in a turn of its own does not thaw it either.
  containers.back().state = {.running = kube::ContainerRunning{.started_at = node_.clock().wall()}};
  node_.run_for(seconds{1});
  EXPECT_FALSE(node_.runs("b"));
}

// The time counts from when the container is added, also while the pod is alone and in no turns,
// and while it is in none again.
TEST_F(NodePolicyTest, EphemeralContainersUseUpTheirTimeBeforeThereAreTurns) {
  two_gangs();
  kube::ContainerStatus missing{.name = "missing"};
  missing.state.waiting = kube::ContainerWaiting{.reason = "ImagePullBackOff"};
  node_.pod("b").status.ephemeral_container_statuses = {missing};
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(minutes{1});
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(seconds{30});
  EXPECT_TRUE(node_.runs("b"));
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(seconds{31});
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(seconds{1});
  EXPECT_FALSE(node_.runs("b"));
}

// One that has started and settled meanwhile uses up no more.
TEST_F(NodePolicyTest, EphemeralContainersThatRunUseUpNoTimeBeforeThereAreTurns) {
  two_gangs();
  kube::ContainerStatus shell{.name = "shell"};
  shell.state.running = kube::ContainerRunning{.started_at = node_.clock().wall()};
  node_.pod("b").status.ephemeral_container_statuses = {shell};
  node_.publish(node_.timetable({}, {{}}));
  node_.run_for(minutes{5});
  shell = {.name = "other"};
  shell.state.waiting = kube::ContainerWaiting{.reason = "ContainerCreating"};
  node_.pod("b").status.ephemeral_container_statuses.push_back(shell);
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(seconds{119});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
}

// The allowance is a time and not a number of containers: each of these starts within 5 s and has
// settled 3 s later, which is charged as well. So of 2 min 15 of them are let start.
TEST_F(NodePolicyTest, EphemeralContainersThatStartUseUpTheSameTime) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  auto& containers = node_.pod("b").status.ephemeral_container_statuses;
  int thawed_for = 0;
  for (int i = 0; i < 30; ++i) {
    kube::ContainerStatus shell{.name = "shell" + std::to_string(i)};
    shell.state.waiting = kube::ContainerWaiting{.reason = "ContainerCreating"};
    containers.push_back(shell);
    node_.run_for(seconds{5});
    thawed_for += node_.runs("b") ? 1 : 0;
    containers.back().state = {.running =
                                   kube::ContainerRunning{.started_at = node_.clock().wall()}};
    node_.run_for(minutes{1});
    EXPECT_FALSE(node_.runs("b")) << i;
  }
  EXPECT_EQ(thawed_for, 15);
}

// The timetable names a pod, but the pod of that name has another owner, or is bound elsewhere.
// Freezing it would stop a stranger.
TEST_F(NodePolicyTest, RefusesAPodOfAnotherJobOrNode) {
  two_gangs();
  node_.pod("a").metadata.owner_references[0].uid = "job-recreated";
  node_.pod("b").spec.node_name = "n2";
  node_.run_for(seconds{3});
  EXPECT_THAT(node_.log(), IsEmpty());
  EXPECT_EQ(node_.view("a").standing, PodStanding::kRefused);
  EXPECT_THAT(node_.view("a").note, HasSubstr("job-recreated"));
  EXPECT_THAT(node_.view("b").note, HasSubstr("n2"));
  node_.pod("a").metadata.owner_references[0].kind = "ReplicaSet";
  node_.step();
  EXPECT_THAT(node_.view("a").note, HasSubstr("not controlled by a kubegang Job"));
}

// A pod that others have made has another controller; the operator's label names its Job. The label
// counts only if it is that of the job which the timetable lists.
TEST_F(NodePolicyTest, SwitchesAPodThatTheOperatorHasLabelled) {
  two_gangs();
  kube::ObjectMeta& metadata = node_.pod("a").metadata;
  metadata.owner_references[0].kind = "ReplicaSet";
  metadata.labels["kubegang.io/job-uid"] = "job-other";
  node_.step();
  EXPECT_EQ(node_.view("a").standing, PodStanding::kRefused) << "listed for another";
  metadata.labels["kubegang.io/job-uid"] = metadata.owner_references[0].uid;
  node_.run_for(seconds{3});
  EXPECT_EQ(node_.view("a").standing, PodStanding::kControlled);
}

// The API server takes any text for the UID of an owner; a line of the journal does not.
TEST_F(NodePolicyTest, RefusesAPodOfAJobWhoseUidIsNone) {
  two_gangs();
  // Written unchecked, this would be a second line that names a pod uid-x as the agent's, and the
  // next agent would thaw it.
  const std::string odd = "job-a\npod uid-x default/x job-x /";
  node_.pod("a").metadata.owner_references[0].uid = odd;
  node_.publish(node_.timetable({"a", "b"}, {{1}}));
  node_.run_for(seconds{1});
  EXPECT_EQ(node_.view("a").standing, PodStanding::kRefused);
  EXPECT_THAT(journaled(), ElementsAre("uid-b"));
}

// The cost and the writes depend on the listed pods alone.
TEST_F(NodePolicyTest, TenThousandOtherPodsOnTheNodeAreNotTouched) {
  two_gangs();
  for (int i = 0; i < 10'000; ++i) node_.add_pod("other-" + std::to_string(i), "other");
  node_.step();
  node_.clock().advance(milliseconds{1000});
  node_.step();
  // One switch when the timetable came (b goes off) and one at the boundary: no write to any other
  // pod.
  EXPECT_THAT(node_.log(), ElementsAre("freeze uid-b", "freeze uid-a", "thaw uid-b"));
}

// Both kinds of refusal, at opening and at writing, end in the status of the node; when they are
// gone both pods take their turns.
TEST_F(NodePolicyTest, SaysThatAFreezerIsNotItsToOpenOrToWrite) {
  two_gangs();
  node_.cgroup("b").unreadable = true;
  node_.cgroup("a").fail_next.assign(1000, IoResult::kDenied);
  node_.run_for(milliseconds{1500});
  EXPECT_TRUE(node_.view("a").denied);
  EXPECT_THAT(node_.view("a").note, HasSubstr("refuses"));
  EXPECT_TRUE(node_.view("b").denied);
  EXPECT_THAT(node_.view("b").note, HasSubstr("Permission denied"));
  node_.cgroup("b").unreadable = false;
  node_.cgroup("a").fail_next.clear();
  node_.run_for(seconds{4});
  EXPECT_NE(node_.runs("a"), node_.runs("b"));
  EXPECT_FALSE(node_.view("a").denied || node_.view("b").denied);
}

// Rule 5 of freezer.md 4. A pod that outlives its grace time must not run in other turns
// forever.
TEST_F(NodePolicyTest, ThawsADeletedPodForItsGracePeriodThenTheTimetableAppliesAgain) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{5};
  node_.pod("b").metadata.deletion_grace_period_seconds = 5;
  node_.log();
  node_.run_for(milliseconds{300});
  EXPECT_THAT(node_.log(), ElementsAre("thaw uid-b", "thaw uid-b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kExempt);
  // kubelet counts from when it sends SIGTERM, which is later than the request.
  // 5 s of grace and 5 s for kubelet's lag are over at 10 s; 0.3 s have passed already.
  node_.run_for(milliseconds{9500});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
}

// The agent was restarted, or did not reach the API server: kubelet has been counting for long.
TEST_F(NodePolicyTest, ThawsADeletedPodAsKubeletCountsAndNotFromWhenItHeardOfIt) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{10};
  node_.pod("b").metadata.deletion_grace_period_seconds = 30;  // requested 20 s ago
  // 10 s are left of the grace time, and kKubeletLag adds 5 s: thawed at 14 s, frozen again by 16
  // s.
  node_.run_for(seconds{14});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
}

// A second delete with a shorter grace time moves the timestamp. The timestamp comes from the API
// server's clock and is compared with the node's; here the two differ by an hour, in both
// directions.
TEST_F(NodePolicyTest, AShorterGraceTimeCountsAtOnceAndAWrongClockNeverMakesItLonger) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + minutes{60};
  node_.pod("b").metadata.deletion_grace_period_seconds = 30;  // the node's clock is behind
  node_.run_for(seconds{20});
  EXPECT_TRUE(node_.runs("b"));
  node_.pod("b").metadata.deletion_grace_period_seconds = 10;
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
  node_.pod("a").metadata.deletion_timestamp = node_.clock().wall() - minutes{60};
  node_.pod("a").metadata.deletion_grace_period_seconds = 30;  // the clock is ahead
  node_.publish(node_.timetable({"a", "b"}, {{1}}));
  node_.run_for(seconds{4});
  EXPECT_TRUE(node_.runs("a"));  // some time in any case
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("a"));
}

// Two minutes are long after the grace time. Frozen again, it could never be killed.
TEST_F(NodePolicyTest, KeepsADeletedPodOfCgroupV1ThawedUntilItIsGone) {
  two_gangs();
  node_.cgroup("b").kill_works_while_frozen = false;
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{5};
  node_.pod("b").metadata.deletion_grace_period_seconds = 5;
  node_.run_for(minutes{2});
  EXPECT_TRUE(node_.runs("b"));
}

// An eviction is announced by a condition, and the deletion follows.
TEST_F(NodePolicyTest, ThawsADisruptedPodAndGivesTheDeletionAGracePeriodOfItsOwn) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.pod("b").status.conditions = {
      {.type = "DisruptionTarget", .status = kube::ConditionStatus::kTrue}};
  node_.run_for(seconds{20});
  EXPECT_TRUE(node_.runs("b"));
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall() + seconds{30};
  node_.pod("b").metadata.deletion_grace_period_seconds = 30;
  // The disruption does not use up the deletion's 30 s, to which kKubeletLag adds 5 s.
  node_.run_for(seconds{34});
  EXPECT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
}

// The deletion has no grace time, and the pod stays for a minute all the same.
TEST_F(NodePolicyTest, DoesNotFreezeAPodThatIsDeletedWhileItStarts) {
  two_gangs();
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall();
  node_.run_for(minutes{1});
  EXPECT_TRUE(node_.runs("b"));
}

// Deleted while no agent was there; no journal says which program froze it.
TEST_F(NodePolicyTest, ThawsAForeignPodThatIsBeingDeletedWhenItStarts) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.publish(node_.timetable({"a", "b", "c"}, {{0}}));
  for (const char* name : {"b", "c"}) {
    node_.pod(name).metadata.deletion_timestamp = node_.clock().wall();
    node_.pod(name).metadata.deletion_grace_period_seconds = 30;
  }
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.run_for(milliseconds{300});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kExempt);
  // The two thaws of a deleted pod; c ran, so it is not written at all.
  EXPECT_EQ(node_.cgroup("b").writes, 2U);
  EXPECT_EQ(node_.cgroup("c").writes, 0U);
}

// For example, no descriptor was free: the answer is unknown.
TEST_F(NodePolicyTest, LooksAgainAtAForeignPodThatIsBeingDeletedAndCouldNotBeRead) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.pod("b").metadata.deletion_timestamp = node_.clock().wall();
  node_.pod("b").metadata.deletion_grace_period_seconds = 30;
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.cgroup("b").unreadable = true;
  node_.run_for(milliseconds{300});
  ASSERT_FALSE(node_.runs("b"));
  node_.cgroup("b").unreadable = false;
  node_.run_for(milliseconds{300});
  EXPECT_TRUE(node_.runs("b"));
}

// A pod that has failed and a pod whose object is gone: both may still have processes, which would
// stay frozen and keep the cgroup from being removed.
TEST_F(NodePolicyTest, ThawsWhatIsLeftOfAFinishedOrVanishedPod) {
  two_gangs();
  node_.add_pod("c", "c");
  node_.publish(node_.timetable({"a", "b", "c"}, {{0}}));
  node_.step();
  ASSERT_FALSE(node_.runs("b"));
  node_.pod("b").status.phase = kube::PodPhase::kFailed;
  node_.remove_pod("c");
  node_.run_for(milliseconds{200});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_TRUE(node_.runs("c"));
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
}

// b was frozen before it was listed, so the journal does not name it.
TEST_F(NodePolicyTest, LeavesAForeignFreezeAloneAndReportsIt) {
  two_gangs();
  node_.publish(node_.timetable({"a"}, {{0}}));
  node_.step();
  node_.cgroup("b").request = FreezeRequest::kFrozen;
  node_.publish(node_.timetable({"a", "b"}, {{0}, {1}}));
  node_.run_for(seconds{5});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_EQ(node_.cgroup("b").writes, 0U);
  EXPECT_EQ(node_.view("b").state, FreezeState::kForeign);
  node_.restart_agent();
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));  // and the journal does not change that
}

// CRI-O's monitor in the pod's cgroup would be frozen with it.
TEST_F(NodePolicyTest, NeverFreezesAPodWhoseCgroupHoldsAPartOfTheRuntime) {
  two_gangs();
  node_.cgroup("b").never_freeze = "the runtime is in it";
  node_.run_for(seconds{12});
  EXPECT_EQ(node_.cgroup("b").writes, 0U);
  EXPECT_EQ(node_.view("b").standing, PodStanding::kRefused);
  EXPECT_TRUE(node_.view("b").never_frozen);
  EXPECT_FALSE(node_.view("b").no_cgroup);
  EXPECT_EQ(node_.view("b").note, "the runtime is in it");
  EXPECT_THAT(journaled(), ElementsAre("uid-a"));
  node_.cgroup("b").never_freeze.clear();
  // Such a pod is looked at every 10 s.
  node_.run_for(seconds{11});
  EXPECT_EQ(node_.view("b").standing, PodStanding::kControlled);
}

// An agent that did not know it has frozen the pod.
TEST_F(NodePolicyTest, ThawsSuchAPodThatTheAgentBeforeHasFrozen) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(milliseconds{300});
  ASSERT_FALSE(node_.runs("b"));
  node_.cgroup("b").never_freeze = "the runtime is in it";
  node_.restart_agent();
  node_.run_for(milliseconds{500});
  EXPECT_TRUE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").standing, PodStanding::kRefused);
}

// The pod's object exists before kubelet has made its cgroup.
TEST_F(NodePolicyTest, WaitsForACgroupThatIsNotThereYet) {
  two_gangs();
  node_.cgroup("b").removed = true;
  node_.run_for(seconds{1});
  EXPECT_EQ(node_.view("b").standing, PodStanding::kSettling);
  node_.cgroup("b").removed = false;
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.run_for(milliseconds{300});
  EXPECT_FALSE(node_.runs("b"));
}

// The pod's cgroup is not where the agent looks, or cannot be read: it runs in a's turns, too, and
// that must not go unsaid. Until then it may be that the pod has just ended.
TEST_F(NodePolicyTest, SaysAfter10SecondsThatASettledPodHasNoCgroup) {
  two_gangs();
  node_.cgroup("b").removed = true;
  node_.run_for(seconds{9});
  EXPECT_FALSE(node_.view("b").no_cgroup);
  node_.run_for(seconds{2});
  EXPECT_TRUE(node_.view("b").no_cgroup);
  EXPECT_EQ(node_.view("b").note, "no cgroup");
  EXPECT_FALSE(node_.view("a").no_cgroup);
  node_.cgroup("b").removed = false;
  node_.run_for(milliseconds{200});
  EXPECT_FALSE(node_.view("b").no_cgroup);
  EXPECT_EQ(node_.view("b").standing, PodStanding::kControlled);
}

// As if kubelet had made the pod's cgroup again. The descriptors of the old cgroup are dead.
TEST_F(NodePolicyTest, TakesUpAPodWhoseCgroupWasRemovedAndMadeAgain) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  node_.cgroup("b").removed = true;
  node_.run_for(seconds{3});
  EXPECT_EQ(node_.view("b").state, FreezeState::kGone);
  node_.cgroup("b") = {};  // a new one, which is not frozen
  ASSERT_TRUE(node_.runs("b"));
  node_.run_for(seconds{2});
  EXPECT_FALSE(node_.runs("b"));
  EXPECT_EQ(node_.view("b").state, FreezeState::kFrozen);
}

// The new pod settles by itself, and what is left of the old one is thawed, not switched.
TEST_F(NodePolicyTest, TreatsARecreatedPodOfTheSameNameAsANewOne) {
  two_gangs();
  node_.publish(node_.timetable({"a", "b"}, {{0}}));
  node_.step();
  kube::Pod& pod = node_.pod("b");
  pod.metadata.uid = "uid-b2";
  pod.status.container_statuses[0].state.running->started_at = node_.clock().wall();
  node_.run_for(milliseconds{500});
  EXPECT_TRUE(node_.runs("b"));  // what is left of the old one
  EXPECT_TRUE(node_.runs("b2"));
  node_.run_for(seconds{3});
  EXPECT_FALSE(node_.runs("b2"));
}

}  // namespace
}  // namespace agent
