// What happens to nodes and pods while gangs are frozen on them: deletion, eviction, drain, loss of
// a node. A frozen program still gets its SIGTERM; a gang that loses a member ends as a whole
// (architecture.md 4 and 5).
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

class Nodes : public Cluster {
 protected:
  // A job of one node that says in a file when it was told to end, beside another that keeps it
  // frozen half of the time.
  void frozen_trapping_job() {
    ASSERT_NO_FATAL_FAILURE(make_partition(ns_ + "-one", {{"nodes", {{"hostlist", node(1)}}}}));
    ASSERT_NO_FATAL_FAILURE(submit({.name = "traps",
                                    .nodes_count = 1,
                                    .command = {"sh", "-c",
                                                "trap 'echo told >/stamps/told; exit 7' TERM; "
                                                "while :; do sleep 0.1; done"},
                                    .partition = ns_ + "-one",
                                    .patch = {{"spec", {{"requeue", false}}}}}));
    ASSERT_NO_FATAL_FAILURE(submit({.name = "other", .nodes_count = 1, .partition = ns_ + "-one"}));
    ASSERT_NO_FATAL_FAILURE(wait_ready("traps"));
    ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
    ASSERT_NO_FATAL_FAILURE(wait_until("the job is frozen", [&] {
      trapping_pod_ = pod_on("traps", node(1));
      return trapping_pod_.is_object() && is_frozen(trapping_pod_);
    }));
  }
  std::string pod_path(const json& pod, const std::string& subresource = {}) const {
    return "/api/v1/namespaces/" + ns_ + "/pods/" + pod["metadata"]["name"].get<std::string>() +
           (subresource.empty() ? "" : "/" + subresource);
  }
  bool was_told() const { return std::ifstream{stamps_in_ + "/told"}.good(); }
  void expect_told_and_gone(const std::string& state_wanted) {
    ASSERT_NO_FATAL_FAILURE(wait_until("its handler of SIGTERM ran", [&] { return was_told(); }));
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the pod is gone", [&] { return get(pod_path(trapping_pod_)).is_null(); }));
    ASSERT_NO_FATAL_FAILURE(wait_state("traps", state_wanted));
  }
  void TearDown() override {
    if (!ns_.empty()) {
      (void)call(kube::Method::kDelete, "/apis/kubegang.io/v1alpha1/partitions/" + ns_ + "-one");
    }
    Cluster::TearDown();
  }

  json trapping_pod_;
};

TEST_F(Nodes, ADeletedPodThatIsFrozenHandlesItsSigterm) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  ASSERT_NO_FATAL_FAILURE(remove(pod_path(trapping_pod_)));
  ASSERT_NO_FATAL_FAILURE(expect_told_and_gone("NodeFail"));
  expect_undisturbed("other");
}

TEST_F(Nodes, AnEvictedPodThatIsFrozenHandlesItsSigterm) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  const auto evicted =
      call(kube::Method::kPost, pod_path(trapping_pod_, "eviction"),
           {{"apiVersion", "policy/v1"},
            {"kind", "Eviction"},
            {"metadata", {{"name", trapping_pod_["metadata"]["name"]}, {"namespace", ns_}}}});
  ASSERT_TRUE(evicted.ok()) << evicted.error().message;
  ASSERT_NO_FATAL_FAILURE(expect_told_and_gone("NodeFail"));
}

TEST_F(Nodes, ACancelledJobThatIsFrozenHandlesItsSigterm) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  ASSERT_NO_FATAL_FAILURE(patch(job_path("traps"), {{"spec", {{"cancel", true}}}}));
  ASSERT_NO_FATAL_FAILURE(expect_told_and_gone("Cancelled"));
}

TEST_F(Nodes, AForceDeletedPodThatIsFrozenLeavesNoProcess) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  const std::string cgroup = cgroup_of(trapping_pod_);
  ASSERT_FALSE(cgroup.empty());
  ASSERT_NO_FATAL_FAILURE(remove(pod_path(trapping_pod_), {{"gracePeriodSeconds", 0}}));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("its processes are gone", [&] { return !has_processes(cgroup); }));
  ASSERT_NO_FATAL_FAILURE(wait_state("traps", "NodeFail"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the other job has the node for itself", [&] {
    return !devcluster::eventually([&] { return is_frozen(pod_on("other", node(1))); }, seconds{2});
  }));
}

// The gang is requeued as a whole when one node is drained, and starts where there is room.
TEST_F(Nodes, ADrainedNodesGangStartsAgainElsewhere) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  ASSERT_EQ(job("pair").status.allocation->node_list, nodes(1, 2));
  const Output drained =
      run(kubectl("drain " + node(1) +
                  " --ignore-daemonsets --force --delete-emptydir-data --timeout=90s "
                  "--pod-selector=kubegang.io/job"));
  EXPECT_EQ(drained.exit_code, 0) << drained.text;
  ASSERT_NO_FATAL_FAILURE(wait_until("the gang has started again", [&] {
    const kube::Job now_is = job("pair");
    return now_is.status.starts.value_or(0) == 2 &&
           kube::is_true(now_is.status.conditions, "Ready");
  }));
  EXPECT_EQ(job("pair").status.allocation->node_list, nodes(2, 3));
  EXPECT_EQ(job("pair").status.restarts.value_or(0), 1);
  EXPECT_EQ(pods("pair").size(), 2U);
  EXPECT_EQ(run(kubectl("uncordon " + node(1))).exit_code, 0);
}

// Its pods may still run: nothing is started in their place until the node is back and says so.
TEST_F(Nodes, ANodeThatIsPoweredOffAndBackEndsItsGangOnce) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "lost", .patch = {{"spec", {{"requeue", false}}}}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "stays", .nodes_count = 1}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("lost"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("stays"));
  ASSERT_EQ(job("stays").status.allocation->node_list, node(1));
  ASSERT_NO_FATAL_FAILURE(power_off(3));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "the node is not ready", [&] { return !node_is_ready(3); }, seconds{90}));
  EXPECT_FALSE(has_ended("lost")) << "its pods are not confirmed gone yet";
  ASSERT_NO_FATAL_FAILURE(power_on(3));
  ASSERT_NO_FATAL_FAILURE(wait_state("lost", "NodeFail", seconds{120}));
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(wait_until("its pods have ended", [&] {
    const auto all = pods("lost");
    return std::none_of(all.begin(), all.end(),
                        [](const json& pod) { return pod["status"]["phase"] == "Running"; });
  }));
  expect_undisturbed("stays");
}

// kubelet is silent, the pods run: nothing is killed, nothing is started twice, and the rotation
// goes on, since the agent does not need kubelet.
TEST_F(Nodes, ANodeThatIsNotReadyButRunsKeepsItsGangs) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "first"}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "second"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("first"));
  ASSERT_NO_FATAL_FAILURE(wait_ready("second"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second"}));
  const Instant from = now();
  ASSERT_EQ(on_node(2, "sh -c 'kill -STOP $(cat /run/kubelet.pid)'").exit_code, 0);
  wait_until(
      "the node is not ready", [&] { return !node_is_ready(2); }, seconds{90});
  wait_for_turns({"first", "second"});
  EXPECT_EQ(on_node(2, "sh -c 'kill -CONT $(cat /run/kubelet.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from, {"first", "second"}));
  expect_undisturbed("first");
  expect_undisturbed("second");
}

// A preemptor fills every CPU of the nodes above jobs that fill them too: kubelet must not count.
TEST_F(Nodes, APreemptorStartsAboveSuspendedVictimsOnEveryCpu) {
  ASSERT_NO_FATAL_FAILURE(make_partition(ns_ + "-one", {{"priorityTier", 10}}));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "victim"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("victim"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "urgent", .partition = ns_ + "-one"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("urgent"));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim is frozen on all nodes", [&] {
    const auto all = pods("victim");
    return all.size() == 3 &&
           std::all_of(all.begin(), all.end(), [&](const json& pod) { return is_frozen(pod); });
  }));
  const Instant from = now();
  // All CPUs that the agents report, for both.
  for (const auto& timetable : timetables()) {
    ASSERT_TRUE(timetable.status.topology);
    const auto& topology = *timetable.status.topology;
    for (const char* name : {"victim", "urgent"}) {
      const json pod = pod_on(name, timetable.metadata.name);
      EXPECT_EQ(
          pod["spec"]["containers"][0]["resources"]["limits"]["cpu"],
          std::to_string(topology.sockets * topology.cores_per_socket * topology.threads_per_core));
    }
  }
  EXPECT_TRUE(devcluster::throughout(
      [&] {
        const auto all = pods("victim");
        return std::all_of(all.begin(), all.end(), [&](const json& pod) { return is_frozen(pod); });
      },
      seconds{2}));
  EXPECT_EQ(turns().overlap_since(from, {"victim", "urgent"}), Duration{});
  EXPECT_TRUE(turns().runs_at(now(), "urgent", milliseconds{500}));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("urgent")));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim runs again", [&] {
    return turns().runs_at(now(), "victim", milliseconds{500});
  }));
  expect_undisturbed("victim");
}

}  // namespace
}  // namespace kubernetes
