#include "e2e/devcluster/kubelet/pod_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace devcluster {
namespace {

using kube::PodPhase;
using std::chrono::seconds;
using testing::ElementsAre;

// PodMachine is pure: each test passes it what happened, and compares the actions that it returns
// and the phase. Init containers have the first indexes.

ContainerIndex index(std::int32_t value) {
  return ContainerIndex{value};
}
// `second` on both clocks, which begin at different times: mistaking one for the other shows.
Now at(int second) {
  return {base::Instant{seconds{1000 + second}}, base::Duration{seconds{second}}};
}

// Makes a pod with these numbers of init containers and containers; nothing else of it is read.
std::shared_ptr<const kube::Pod> pod(std::size_t init_count, std::size_t containers_count) {
  kube::Pod out{.metadata = {.name = "a-0", .ns = "default", .uid = "u"}};
  out.spec.init_containers.resize(init_count);
  out.spec.containers.resize(containers_count);
  return std::make_shared<const kube::Pod>(std::move(out));
}

// Between the steps the pod is Pending, until the last container runs: the operator must not take a
// gang for running while an init container of it works.
TEST(PodMachine, RunsInitContainersOneAfterTheOtherThenAllContainersAtOnce) {
  PodMachine machine{pod(2, 2)};
  EXPECT_THAT(machine.admit(at(0)), ElementsAre(WriteStatus{}, StartContainer{index(0)}));
  EXPECT_EQ(machine.records()[2].reason, "PodInitializing");
  EXPECT_THAT(machine.started(index(0), "i0", at(0)), ElementsAre(WriteStatus{}));
  EXPECT_THAT(machine.exited(index(0), {}, at(1)),
              ElementsAre(WriteStatus{}, StartContainer{index(1)}));
  EXPECT_THAT(machine.started(index(1), "i1", at(1)), ElementsAre(WriteStatus{}));
  EXPECT_FALSE(machine.initialized());
  EXPECT_THAT(machine.exited(index(1), {}, at(2)),
              ElementsAre(WriteStatus{}, StartContainer{index(2)}, StartContainer{index(3)}));
  EXPECT_TRUE(machine.initialized());
  EXPECT_EQ(machine.phase(), PodPhase::kPending);
  EXPECT_THAT(machine.started(index(2), "c0", at(2)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kPending);
  EXPECT_THAT(machine.started(index(3), "c1", at(2)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kRunning);
  EXPECT_EQ(machine.records()[3].started_at, at(2).wall);
}

// The first that ends does not end the pod.
TEST(PodMachine, SucceedsWhenAllContainersExitWithZero) {
  PodMachine machine{pod(0, 2)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.started(index(1), "b", at(0));
  machine.exited(index(0), {}, at(1));
  EXPECT_EQ(machine.phase(), PodPhase::kRunning);
  machine.exited(index(1), {}, at(2));
  EXPECT_EQ(machine.phase(), PodPhase::kSucceeded);
  EXPECT_EQ(machine.records()[1].reason, "Completed");
}

// The exit code reaches the user through the job's status, so it must be that of the program.
TEST(PodMachine, FailsWithTheExitCodeOfTheOneThatFailed) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.exited(index(0), {.exit_code = 137, .signal = SIGKILL}, at(1));
  EXPECT_EQ(machine.phase(), PodPhase::kFailed);
  EXPECT_EQ(machine.records()[0].reason, "Error");
  EXPECT_EQ(machine.records()[0].exit, (ExitStatus{.exit_code = 137, .signal = SIGKILL}));
}

// SOURCE: Kubernetes, restartPolicy Never: a failed init container fails the pod.
TEST(PodMachine, StartsNoContainerAfterAFailedInitContainer) {
  PodMachine machine{pod(1, 1)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  EXPECT_THAT(machine.exited(index(0), {.exit_code = 3}, at(1)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kFailed);
}

// A program that does not exist fails the pod at once instead of keeping a gang waiting.
TEST(PodMachine, TerminatesContainerThatCannotStart) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  EXPECT_THAT(machine.start_failed(index(0), "StartError", "exec: no", at(0)),
              ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kFailed);
  // As a container runtime reports a container that it could not start.
  EXPECT_EQ(machine.records()[0].exit.exit_code, 128);
}

// An image may be pushed later. The pod keeps its reason, which the operator shows.
TEST(PodMachine, StaysPendingWhileAnImageCannotBePulled) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  EXPECT_THAT(machine.start_blocked(index(0), "ErrImagePull", "no"), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kPending);
  EXPECT_EQ(machine.records()[0].reason, "ErrImagePull");
  // And it can be deleted without a process to wait for.
  EXPECT_THAT(machine.delete_requested(seconds{30}, at(1)),
              ElementsAre(WriteStatus{}, RemovePod{}));
}

// Deleted at 10 with 5 s: the deadline is 15. One container ends by itself, the other is killed,
// and only then is the object removed.
TEST(PodMachine, SendsSigtermThenSigkillAfterTheGracePeriodAndRemovesWhenAllHasEnded) {
  PodMachine machine{pod(0, 2)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.started(index(1), "b", at(0));
  EXPECT_THAT(machine.delete_requested(seconds{5}, at(10)),
              ElementsAre(SignalContainer{index(0), SIGTERM}, SignalContainer{index(1), SIGTERM}));
  EXPECT_THAT(machine.exited(index(0), {}, at(11)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.deadline(), base::Duration{seconds{15}});
  EXPECT_THAT(machine.tick(at(14)), ElementsAre());
  EXPECT_THAT(machine.tick(at(15)), ElementsAre(KillPod{}));
  EXPECT_THAT(machine.tick(at(16)), ElementsAre());
  EXPECT_THAT(machine.exited(index(1), {.exit_code = 137, .signal = SIGKILL}, at(16)),
              ElementsAre(WriteStatus{}, RemovePod{}));
}

// 30 s at 0 end at 30; 2 s at 1 end at 3, which is sooner; 60 s at 1 are ignored.
TEST(PodMachine, ObeysTheShorterOfTwoGracePeriods) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.delete_requested(seconds{30}, at(0));
  EXPECT_THAT(machine.delete_requested(seconds{2}, at(1)), ElementsAre());
  EXPECT_EQ(machine.deadline(), base::Duration{seconds{3}});
  machine.delete_requested(seconds{60}, at(1));
  EXPECT_EQ(machine.deadline(), base::Duration{seconds{3}});
}

// Finished pods are deleted with their jobs; waiting out a grace time for them would hold the job's
// object.
TEST(PodMachine, RemovesAPodThatHadEndedAtOnce) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.exited(index(0), {}, at(1));
  EXPECT_THAT(machine.delete_requested(seconds{30}, at(2)),
              ElementsAre(WriteStatus{}, RemovePod{}));
  // The result stays what it was: a success that is deleted is still a success.
  EXPECT_EQ(machine.phase(), PodPhase::kSucceeded);
}

// A race: the start was under way when the deletion came. Unsignaled, the container would live
// through the whole grace time.
TEST(PodMachine, SignalsAContainerThatStartedAfterTheDeletion) {
  PodMachine machine{pod(0, 2)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  machine.delete_requested(seconds{5}, at(1));
  EXPECT_THAT(machine.started(index(1), "b", at(1)),
              ElementsAre(WriteStatus{}, SignalContainer{index(1), SIGTERM}));
}

// Pods of a node that lost its power can only be known to have failed when it is back.
TEST(PodMachine, FailsAfterARebootOfItsNode) {
  PodMachine machine{pod(0, 1)};
  machine.admit(at(0));
  machine.started(index(0), "a", at(0));
  EXPECT_THAT(machine.node_rebooted(at(9)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kFailed);
  // The end was not seen, so the exit code is not known: kubelet writes 255.
  EXPECT_EQ(machine.records()[0].exit.exit_code, 255);
}

// kubelet's refusal is final; the operator reads its reason and gives the job other nodes.
TEST(PodMachine, IsFailedWithTheReasonWhenRefused) {
  PodMachine machine{pod(0, 1)};
  EXPECT_THAT(machine.refuse("OutOfcpu", "no", at(0)), ElementsAre(WriteStatus{}));
  EXPECT_EQ(machine.phase(), PodPhase::kFailed);
  EXPECT_EQ(machine.reason(), "OutOfcpu");
}

}  // namespace
}  // namespace devcluster
