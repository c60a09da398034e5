// The pods of a start say how it stands.
#include "operator/gang/gang_observation.h"

#include <gtest/gtest.h>

namespace control {
namespace {

using std::chrono::seconds;

constexpr base::Instant kSeen{seconds{1'000'000}};

class GangObservationTest : public testing::Test {
 protected:
  // A gang of two pods on two nodes.
  GangObservationTest() {
    slots_ = {{.name = "a", .node = "n1", .index = 0}, {.name = "b", .node = "n2", .index = 1}};
  }
  // Made at first use, with one container.
  kube::Pod& pod(const std::string& name) {
    auto& slot = made_[name];
    slot.metadata.name = name;
    if (slot.spec.containers.empty()) slot.spec.containers.resize(1);
    return slot;
  }
  // As kubelet reports it.
  void running(const std::string& name, base::Instant started_at) {
    kube::Pod& one = pod(name);
    one.status.phase = kube::PodPhase::kRunning;
    one.status.container_statuses = {{.name = "main"}};
    one.status.container_statuses[0].state.running = kube::ContainerRunning{started_at};
  }
  void ended(const std::string& name, int exit_code, const std::string& reason = "Error",
             base::Instant at = kSeen) {
    kube::Pod& one = pod(name);
    one.status.phase = exit_code == 0 ? kube::PodPhase::kSucceeded : kube::PodPhase::kFailed;
    one.status.container_statuses = {{.name = "main"}};
    one.status.container_statuses[0].state = {};
    one.status.container_statuses[0].state.terminated =
        kube::ContainerTerminated{.exit_code = exit_code,
                                  .reason = reason,
                                  .started_at = at - seconds{10},
                                  .finished_at = at};
  }
  // The pod's container cannot start, for this reason.
  void waiting(const std::string& name, const std::string& reason) {
    kube::Pod& one = pod(name);
    one.status.phase = kube::PodPhase::kPending;
    one.status.container_statuses = {{.name = "main"}};
    one.status.container_statuses[0].state.waiting = kube::ContainerWaiting{reason, ""};
  }
  GangObservation observe(bool ready = false,
                          std::optional<base::Instant> deadline = std::nullopt) {
    std::vector<SlotPod> pods(slots_.size());
    for (const PodSlot& slot : slots_) {
      const auto one = made_.find(slot.name);
      if (one == made_.end()) continue;
      pods[static_cast<std::size_t>(slot.index)] =
          SlotPod{std::make_shared<const kube::Pod>(one->second)};
    }
    return observe_gang({.slots = slots_,
                         .pods = pods,
                         .failing_since = &failing_since_,
                         .settle = seconds{2},
                         .start_deadline = deadline,
                         .ready = ready,
                         .success_policy = success_policy_ ? &*success_policy_ : nullptr,
                         .are_adopted = are_adopted_},
                        kSeen);
  }

  std::vector<PodSlot> slots_;
  std::map<std::string, kube::Pod> made_;
  std::map<std::string, base::Instant> failing_since_;
  std::optional<kube::SuccessPolicy> success_policy_;
  bool are_adopted_ = false;
};

// A gang is ready when its slowest pod is, because its programs wait for each other.
TEST_F(GangObservationTest, IsAsSettledAsItsSlowestPod) {
  running("a", kSeen - seconds{100});
  EXPECT_EQ(observe().missing, std::vector<int>{1});
  EXPECT_FALSE(observe().settled_at.has_value());
  running("b", kSeen - seconds{1});
  // startedAt's whole second and 2 s of settling.
  EXPECT_EQ(observe().settled_at, kSeen + seconds{2});
}

// 97 s ago: a was started 100 s ago, and needs the whole second of startedAt and the 2 s of
// settling. b has ended and needs nothing.
TEST_F(GangObservationTest, AContainerThatHasEndedHasSettled) {
  running("a", kSeen - seconds{100});
  ended("b", 0);
  EXPECT_EQ(observe().settled_at, kSeen - seconds{97});
  EXPECT_FALSE(observe().failure.has_value());
  ended("a", 0);
  EXPECT_TRUE(observe().all_succeeded);
}

// b failed a second before a, so a's failure may be its consequence: the exit code is b's.
TEST_F(GangObservationTest, TheFirstFailureCounts) {
  ended("a", 3, "Error", kSeen - seconds{1});
  ended("b", 4, "Error", kSeen - seconds{2});
  const auto seen = observe(true);
  ASSERT_TRUE(seen.failure.has_value());
  EXPECT_EQ(seen.failure->exit_code, 4);
  EXPECT_EQ(seen.failure->state, sched::JobState::kFailed);
  EXPECT_TRUE(seen.all_finished);
}

// The exit code alone (137) would not show that a deadline was set, and which pod reached it.
TEST_F(GangObservationTest, AFailureQuotesWhyKubeletEndedThePod) {
  running("a", kSeen - seconds{100});
  ended("b", 137);
  EXPECT_EQ(observe(true).failure->message, "pod b on node n2 failed with exit code 137");
  pod("b").status.reason = "DeadlineExceeded";
  pod("b").status.message = "Pod was active on the node longer than the specified deadline";
  EXPECT_EQ(observe(true).failure->message,
            "pod b on node n2 failed with exit code 137: DeadlineExceeded: Pod was active on the "
            "node longer than the specified deadline");
}

// The driver ends well, and its worker fails because of that; or the worker fails before.
TEST_F(GangObservationTest, ItsSuccessPolicyIsMetBeforeWhatFailsLater) {
  success_policy_ = kube::SuccessPolicy{{{"0", {}}}};
  ended("a", 0, "Completed", kSeen - seconds{5});
  running("b", kSeen - seconds{100});
  EXPECT_EQ(observe(true).success->succeeded, "0");
  // The driver ended 5 s ago. A failure after it, or in the same second (containers have no finer
  // times), counts for nothing; one before it fails the job.
  for (const int ago : {4, 5}) {
    ended("b", 1, "Error", kSeen - seconds{ago});
    EXPECT_TRUE(observe(true).success.has_value()) << ago;
    EXPECT_FALSE(observe(true).failure.has_value()) << ago;
  }
  ended("b", 1, "Error", kSeen - seconds{6});
  EXPECT_FALSE(observe(true).success.has_value());
  EXPECT_TRUE(observe(true).failure.has_value());
  waiting("b", "InvalidImageName");
  EXPECT_TRUE(observe().success.has_value());
  EXPECT_FALSE(observe().launch.has_value()) << "nothing is left to be launched for";
}

// Their owner deletes them when another one is done, and SIGTERM makes them fail.
TEST_F(GangObservationTest, AdoptedPodsThatAreDeletedAreNoFailure) {
  ended("a", 0);
  ended("b", 143, "Error", kSeen - seconds{1});
  pod("b").metadata.deletion_timestamp = kSeen - seconds{2};
  EXPECT_TRUE(observe(true).failure.has_value()) << "one of our own was deleted by another client";
  are_adopted_ = true;
  EXPECT_FALSE(observe(true).failure.has_value());
  ended("a", 3, "Error", kSeen);
  EXPECT_EQ(observe(true).failure->exit_code, 3) << "the deleted one failed before";
}

// Each change of the pod takes one sign away or adds one: the container's reason, the pod's reason,
// the deletion.
TEST_F(GangObservationTest, TellsMemoryEvictionAndDeletionApart) {
  running("b", kSeen - seconds{100});
  ended("a", 137, "OOMKilled");
  EXPECT_EQ(observe(true).failure->state, sched::JobState::kOutOfMemory);
  // An init container: then kubelet starts no other.
  kube::PodStatus& status = pod("a").status;
  std::swap(status.init_container_statuses, status.container_statuses);
  EXPECT_EQ(observe().failure->state, sched::JobState::kOutOfMemory);
  std::swap(status.init_container_statuses, status.container_statuses);
  pod("a").status.container_statuses[0].state.terminated->reason = "Error";
  pod("a").status.reason = "Evicted";
  EXPECT_TRUE(observe(true).failure->lost_member);
  running("a", kSeen - seconds{100});
  pod("a").status.reason.clear();
  EXPECT_FALSE(observe(true).failure.has_value());
  pod("a").metadata.deletion_timestamp = kSeen;
  EXPECT_TRUE(observe(true).failure->lost_member);
}

// As a real kubelet reports the pods of a node that was powered off and came back.
TEST_F(GangObservationTest, AMemberThatWentDownWithItsNodeIsLostAndHasNotFailed) {
  running("b", kSeen - seconds{100});
  ended("a", 255, "Unknown");
  ASSERT_TRUE(observe(true).failure.has_value());
  EXPECT_TRUE(observe(true).failure->lost_member);
  EXPECT_EQ(observe(true).failure->state, sched::JobState::kNodeFail);
  // Also before the gang is ready: the container is gone and may well have run.
  for (const bool ready : {false, true}) {
    ended("a", 137, "ContainerStatusUnknown");
    ASSERT_TRUE(observe(ready).failure.has_value());
    EXPECT_TRUE(observe(ready).failure->lost_member);
    EXPECT_FALSE(observe(ready).launch.has_value());
  }
  // A program can end with 255 by itself; then its reason is "Error", and the job has failed.
  ended("a", 255, "Error");
  EXPECT_FALSE(observe(true).failure->lost_member);
}

// No container of the pod ever ran, so another node may well take it.
TEST_F(GangObservationTest, KubeletsRefusalIsNoFailureOfTheJob) {
  running("a", kSeen);
  pod("b").status.phase = kube::PodPhase::kFailed;
  pod("b").status.message = "Pod was rejected: why";
  // Each release of Kubernetes has others, so none is known.
  for (const char* reason : {"OutOfcpu", "UnexpectedAdmissionError", "InvalidNodeInfo",
                             "PodOSNotSupported", "Evicted", "NodeShutdown", "SomethingNew"}) {
    pod("b").status.reason = reason;
    const auto seen = observe();
    EXPECT_FALSE(seen.failure.has_value()) << reason;
    ASSERT_TRUE(seen.launch.has_value()) << reason;
    EXPECT_TRUE(seen.launch->node_is_at_fault) << reason;
    EXPECT_EQ(seen.launch->node, "n2");
    EXPECT_EQ(seen.launch->message,
              "node n2 refused the pod: " + std::string{reason} + ": Pod was rejected: why");
  }
  // It counts whether a container ever ran.
  ended("b", 1);
  EXPECT_FALSE(observe().launch.has_value());
  EXPECT_EQ(observe().failure->exit_code, 1);
}

// A kubelet that restarts looks at each pod as if it were new, also at one whose containers run.
TEST_F(GangObservationTest, APodThatKubeletNoLongerTakesIsALostMember) {
  running("a", kSeen);
  pod("b").status.phase = kube::PodPhase::kFailed;
  pod("b").status.reason = "OutOfcpu";
  pod("b").status.message = "Node didn't have enough resource: cpu";
  const auto seen = observe(true);
  ASSERT_TRUE(seen.failure.has_value());
  EXPECT_TRUE(seen.failure->lost_member);
  EXPECT_EQ(seen.failure->message,
            "pod b was ended by node n2: OutOfcpu: Node didn't have enough resource: cpu");
  // A time limit that others have given the pod is over.
  pod("b").status.reason = "DeadlineExceeded";
  EXPECT_FALSE(observe(true).failure->lost_member);
}

// kubectl delete, seen only when kubelet has ended the program: asked for 4 s before it ended, with
// a grace time of 30 s. Whether the program took SIGTERM well says nothing.
TEST_F(GangObservationTest, HowADeletedPodEndsCountsForNothing) {
  running("b", kSeen - seconds{100});
  for (const int exit_code : {143, 0}) {
    ended("a", exit_code);
    pod("a").metadata.deletion_timestamp = kSeen - seconds{4} + seconds{30};
    pod("a").metadata.deletion_grace_period_seconds = 30;
    ASSERT_TRUE(observe(true).failure.has_value()) << exit_code;
    EXPECT_TRUE(observe(true).failure->lost_member) << exit_code;
    EXPECT_FALSE(observe(true).all_succeeded);
  }
  // The peer fails without it, two seconds later; or it had failed two seconds before.
  ended("b", 1, "Error", kSeen - seconds{2});
  EXPECT_TRUE(observe(true).failure->lost_member);
  ended("b", 1, "Error", kSeen - seconds{6});
  EXPECT_FALSE(observe(true).failure->lost_member);
}

// A finalizer keeps an object that was deleted after its program had ended: that end counts.
TEST_F(GangObservationTest, AnEndBeforeTheDeletionCounts) {
  ended("b", 0);
  for (const int exit_code : {3, 0}) {
    ended("a", exit_code);
    pod("a").metadata.deletion_timestamp = kSeen + seconds{1};
    pod("a").metadata.deletion_grace_period_seconds = 0;
    EXPECT_EQ(observe(true).all_succeeded, exit_code == 0);
    EXPECT_EQ(observe(true).failure.has_value(), exit_code != 0);
  }
}

// A leader that sees the end and the deletion at once goes by the times of two clocks. That of the
// node may be 30 s behind: an end by the signal of a deletion is the deletion's all the same.
TEST_F(GangObservationTest, AClockThatIsBehindFailsNoJobWhosePodWasDeleted) {
  running("b", kSeen - seconds{100});
  const auto deleted = [&](int exit_code, seconds after, const std::string& reason = "Error") {
    ended("a", exit_code, reason);
    pod("a").metadata.deletion_timestamp = kSeen + after;
    pod("a").metadata.deletion_grace_period_seconds = 0;
    return observe(true).failure->lost_member;
  };
  for (const int by_signal : {143, 137}) {
    EXPECT_TRUE(deleted(by_signal, seconds{20})) << by_signal;
    EXPECT_FALSE(deleted(by_signal, seconds{31})) << by_signal << ", long before it";
  }
  EXPECT_FALSE(deleted(3, seconds{20})) << "its own exit code";
  EXPECT_FALSE(deleted(137, seconds{20}, "OOMKilled")) << "for its memory";
}

// A registry may be away for a moment, so the gang keeps its nodes for a minute.
TEST_F(GangObservationTest, AnImageThatCannotBePulledHasAMinute) {
  running("a", kSeen);
  waiting("b", "ImagePullBackOff");
  auto seen = observe();
  EXPECT_FALSE(seen.launch.has_value());
  EXPECT_EQ(seen.failing, std::vector<std::string>{"b"});
  EXPECT_EQ(seen.look_again, kSeen + seconds{60});
  failing_since_["b"] = kSeen - seconds{60};
  EXPECT_TRUE(observe().launch.has_value());
  // A name that no registry could ever have does not get better by waiting.
  failing_since_.clear();
  waiting("b", "InvalidImageName");
  EXPECT_TRUE(observe().launch.has_value());
  // Once the job was ready this is no longer about its start.
  EXPECT_FALSE(observe(true).launch.has_value());
}

// 128 is not the program's exit code: the runtime could not start it (a command that does not
// exist).
TEST_F(GangObservationTest, AStartErrorIsALaunchFailure) {
  running("a", kSeen);
  ended("b", 128, "StartError");
  EXPECT_TRUE(observe().launch.has_value());
  EXPECT_FALSE(observe().failure.has_value());
}

// A volume that cannot be mounted and a sandbox that cannot be made show like this. A kubelet that
// says nothing at all is its node's fault.
TEST_F(GangObservationTest, AStartThatTakesTooLongNamesThePodAndWhatKubeletSays) {
  running("a", kSeen);
  waiting("b", "ContainerCreating");
  pod("b").spec.node_name = "n2";
  auto seen = observe(false, kSeen);
  EXPECT_EQ(seen.waits_for, 1);
  ASSERT_TRUE(seen.launch.has_value());
  EXPECT_EQ(seen.launch->message,
            "its pods did not all run within startTimeout: pod b on node n2: container main waits, "
            "ContainerCreating");
  EXPECT_FALSE(seen.launch->node_is_at_fault);
  pod("b").status.container_statuses.clear();
  seen = observe(false, kSeen);
  EXPECT_EQ(seen.launch->message,
            "its pods did not all run within startTimeout: pod b on node n2: its kubelet has not "
            "said anything of it");
  EXPECT_TRUE(seen.launch->node_is_at_fault);
  EXPECT_EQ(seen.launch->node, "n2");
}

// The API server's clock is 29 s behind the operator's, which counts as right. The time from a
// pod's creation to the deadline is the operator's alone, but for what an old pod has had.
TEST_F(GangObservationTest, APodThatFollowsHasItsTimeWhateverTheApiServersClockSays) {
  ended("a", 0);
  waiting("b", "ContainerCreating");
  const Members members{3, {}, 2};
  const auto seen_at = [&](base::Instant created, std::optional<base::Instant> seen) {
    pod("b").metadata.creation_timestamp = created;
    std::vector<SlotPod> pods{SlotPod{std::make_shared<const kube::Pod>(pod("a"))},
                              SlotPod{std::make_shared<const kube::Pod>(pod("b"))}};
    pods[1].seen = seen;
    return observe_gang({.slots = slots_,
                         .pods = pods,
                         .failing_since = &failing_since_,
                         .start_timeout = seconds{20},
                         .members = &members},
                        kSeen);
  };
  const auto fresh = seen_at(kSeen - seconds{29}, kSeen);
  EXPECT_FALSE(fresh.launch.has_value());
  EXPECT_EQ(fresh.look_again, kSeen + seconds{20});
  EXPECT_TRUE(seen_at(kSeen - seconds{20}, kSeen - seconds{20}).launch.has_value());
  // A new leader has just seen it.
  EXPECT_TRUE(seen_at(kSeen - seconds{50}, kSeen).launch.has_value());
}

// While one of them has an init container to finish, or is still missing, others may wait for it.
TEST_F(GangObservationTest, KnowsWhetherAPodIsInAnInitContainer) {
  running("a", kSeen - seconds{100});
  EXPECT_TRUE(observe().awaits_init) << "b does not exist yet";
  kube::Pod& b = pod("b");
  b.spec.init_containers = {{.name = "fetch"}};
  EXPECT_TRUE(observe().awaits_init);
  b.status.init_container_statuses = {{.name = "fetch"}};
  auto& state = b.status.init_container_statuses[0].state;
  state.running = kube::ContainerRunning{kSeen - seconds{300}};
  EXPECT_TRUE(observe().awaits_init);
  const SlotPod one{std::make_shared<const kube::Pod>(b)};
  EXPECT_EQ(one.first_started, kSeen - seconds{300}) << "it counts for the run time";
  EXPECT_TRUE(one.runs);
  state = {.terminated = kube::ContainerTerminated{.exit_code = 0, .finished_at = kSeen}};
  EXPECT_FALSE(observe().awaits_init);
  EXPECT_FALSE(observe().settled_at.has_value());
}

// The clock of its node is 17 s behind, and the pod was made a while after its nodes were
// allocated. Its job would be over its time limit by that much too soon.
TEST_F(GangObservationTest, RunsNoSoonerThanItsPodWasCreated) {
  running("a", kSeen - seconds{17});
  pod("a").metadata.creation_timestamp = kSeen - seconds{2};
  const SlotPod a{std::make_shared<const kube::Pod>(pod("a"))};
  EXPECT_EQ(a.first_started, kSeen - seconds{2});
  EXPECT_EQ(a.clock_behind, seconds{15});
  running("b", kSeen - seconds{1});
  pod("b").metadata.creation_timestamp = kSeen - seconds{2};
  EXPECT_EQ(SlotPod{std::make_shared<const kube::Pod>(pod("b"))}.first_started, kSeen - seconds{1});
}

// At the deadline a gang that lacks a pod has failed to start, and one whose pods all run has not.
TEST_F(GangObservationTest, TheStartTimeoutHoldsUntilAllPodsRun) {
  running("a", kSeen);
  EXPECT_TRUE(observe(false, kSeen).launch.has_value());
  EXPECT_EQ(observe(false, kSeen + seconds{5}).look_again, kSeen + seconds{5});
  running("b", kSeen);
  EXPECT_FALSE(observe(false, kSeen).launch.has_value());
}

}  // namespace
}  // namespace control
