// Deletion, eviction, drain and loss of a node while gangs are frozen there. A frozen program still
// gets its SIGTERM; a gang that loses a member ends as a whole (architecture.md 4 and 5).
#include <algorithm>
#include <fstream>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

// Three real nodes, each a kubelet and a container runtime of their own. A test that takes a node
// away puts it back; if it fails, TearDown() does.
class Nodes : public Cluster {
 protected:
  // A job of one node that says in a file when it got SIGTERM, beside another that keeps it
  // frozen half of the time.
  void frozen_trapping_job() {
    ASSERT_NO_FATAL_FAILURE(
        make_lane_partition(ns_ + "-one", {{"nodes", {{"hostlist", node(1)}}}}));
    ASSERT_NO_FATAL_FAILURE(submit({.name = "traps",
                                    .nodes_count = 1,
                                    // The shell writes a file when SIGTERM arrives, which a frozen
                                    // process does not handle.
                                    .command = {"sh", "-c",
                                                "trap 'echo told >/stamps/told; exit 7' TERM; "
                                                "while :; do sleep 0.1; done"},
                                    .partition = ns_ + "-one",
                                    .patch = {{"spec", {{"lifecycle", {{"requeue", false}}}}}}}));
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
  // The order matters: the handler first, or the pod could be gone because it was killed.
  void expect_told_and_gone(const std::string& state_wanted) {
    ASSERT_NO_FATAL_FAILURE(wait_until("its handler of SIGTERM ran", [&] { return was_told(); }));
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the pod is gone", [&] { return get(pod_path(trapping_pod_)).is_null(); }));
    ASSERT_NO_FATAL_FAILURE(wait_state("traps", state_wanted));
  }
  json trapping_pod_;
};

// The pod of another one's turn is deleted with kubectl: the agent thaws what is being deleted, so
// the handler runs within the grace time. The job has lost a member and ends as NodeFail; the other
// one is not disturbed.
TEST_F(Nodes, ADeletedPodThatIsFrozenHandlesItsSigterm) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  ASSERT_NO_FATAL_FAILURE(remove(pod_path(trapping_pod_)));
  ASSERT_NO_FATAL_FAILURE(expect_told_and_gone("NodeFail"));
  expect_undisturbed("other");
}

// The eviction API ends in the same deletion.
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

// The object is gone at once, and kubelet kills by the cgroup. A frozen process dies only if it is
// thawed.
TEST_F(Nodes, AForceDeletedPodThatIsFrozenLeavesNoProcess) {
  ASSERT_NO_FATAL_FAILURE(frozen_trapping_job());
  // Kept, because the object will be gone.
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

// The gang is requeued as a whole when one node is drained, and starts where there is room; also
// while it is another's turn, and its pods are frozen.
TEST_F(Nodes, ADrainedNodesGangStartsAgainElsewhere) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "pair", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("pair"));
  ASSERT_EQ(job("pair").status.allocation->hostlist, nodes(1, 2));
  // It has two nodes, too, so it is on one of those, and may be requeued with it.
  ASSERT_NO_FATAL_FAILURE(submit({.name = "other", .nodes_count = 2}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the gang is frozen", [&] { return is_frozen(pod_on("pair", node(1))); }));
  const Output drained =
      run_shell(kubectl("drain " + node(1) +
                        " --ignore-daemonsets --force --delete-emptydir-data --timeout=90s "
                        "--pod-selector=kubegang.io/job"));
  EXPECT_EQ(drained.exit_code, 0) << drained.text;
  ASSERT_NO_FATAL_FAILURE(wait_until("the gang has started again", [&] {
    const kube::Job now_is = job("pair");
    return now_is.status.starts.value_or(0) == 2 &&
           kube::is_true(now_is.status.conditions, "Ready");
  }));
  EXPECT_EQ(job("pair").status.allocation->hostlist, nodes(2, 3));
  EXPECT_EQ(job("pair").status.restarts.value_or(0), 1);
  EXPECT_EQ(pods("pair").size(), 2U);
  ASSERT_NO_FATAL_FAILURE(wait_ready("other"));
  EXPECT_EQ(job("other").status.allocation->hostlist, nodes(2, 3));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"pair", "other"}, {node(2), node(3)}));
  EXPECT_EQ(run_shell(kubectl("uncordon " + node(1))).exit_code, 0);
}

// The gang's pods may still run: nothing is started in their place until the node is back and says
// so. On the nodes that are left the gangs take turns as before, so that it would run no two of
// them either.
TEST_F(Nodes, ANodeThatIsPoweredOffAndBackEndsItsGangsOnce) {
  const std::vector<std::string> both{"lost", "again"};
  ASSERT_NO_FATAL_FAILURE(
      submit({.name = "lost", .patch = {{"spec", {{"lifecycle", {{"requeue", false}}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("lost"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "again"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("again"));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "stays", .nodes_count = 1}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("stays"));
  ASSERT_EQ(job("stays").status.allocation->hostlist, node(1));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(both));
  const Instant from = now();
  ASSERT_NO_FATAL_FAILURE(power_off(3));
  ASSERT_NO_FATAL_FAILURE(wait_until(
      // The node controller waits for its grace period first.
      "the node is not ready", [&] { return !node_is_ready(3); }, seconds{90}));
  expect_turns_between(from, now(), both, {node(2)});
  for (const std::string& name : both) {
    EXPECT_FALSE(has_ended(name)) << "its pods are not confirmed gone yet";
    EXPECT_EQ(job(name).status.starts.value_or(0), 1) << status_text(name);
    EXPECT_EQ(pods(name).size(), 3U) << name;
  }
  ASSERT_NO_FATAL_FAILURE(power_on(3));
  ASSERT_NO_FATAL_FAILURE(wait_state("lost", "NodeFail", seconds{120}));
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(wait_until("the other gang has started again, as a whole", [&] {
    const kube::Job found = job("again");
    return found.status.starts.value_or(0) == 2 && kube::is_true(found.status.conditions, "Ready");
  }));
  EXPECT_EQ(job("again").status.restarts.value_or(0), 1) << status_text("again");
  EXPECT_EQ(job("again").status.allocation->hostlist, nodes(1, 3));
  EXPECT_EQ(pods("again").size(), 3U);
  ASSERT_NO_FATAL_FAILURE(wait_until("the lost one's pods have ended", [&] {
    const auto all = pods("lost");
    return std::none_of(all.begin(), all.end(),
                        [](const json& pod) { return pod["status"]["phase"] == "Running"; });
  }));
  expect_undisturbed("stays");
}

// Kubernetes' own controller deletes what does not tolerate the taint.
TEST_F(Nodes, ANoExecuteTaintEndsTheGangAndItStartsAgainAsAWhole) {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "all"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("all"));
  ASSERT_NO_FATAL_FAILURE(
      patch(node_path(3), {{"spec", {{"taints", {{{"key", "e2e"}, {"effect", "NoExecute"}}}}}}}));
  wait_until("the gang waits, and none of its pods is left", [&] {
    return job("all").status.restarts.value_or(0) == 1 && state("all") == "Pending" &&
           pods("all").empty();
  });
  patch(node_path(3), {{"spec", {{"taints", nullptr}}}});
  ASSERT_NO_FATAL_FAILURE(wait_ready("all"));
  EXPECT_EQ(job("all").status.starts.value_or(0), 2) << status_text("all");
  EXPECT_EQ(pods("all").size(), 3U);
}

// kubelet is silent, the pods run: nothing is killed, nothing is started twice or there, and the
// rotation goes on, since the agent does not need kubelet.
TEST_F(Nodes, ANodeThatIsNotReadyButRunsKeepsItsGangs) {
  const std::vector<std::string> both{"first", "second"};
  for (const std::string& name : both) ASSERT_NO_FATAL_FAILURE(submit({.name = name}));
  for (const std::string& name : both) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(both));
  const Instant from = now();
  // Stopped and not ended, so that no service manager starts another one.
  ASSERT_EQ(on_node(2, "sh -c 'kill -STOP $(cat /run/kubelet.pid)'").exit_code, 0);
  wait_until(
      "the node is not ready", [&] { return !node_is_ready(2); }, seconds{90});
  submit({.name = "third"});
  wait_until("the third gang waits", [&] { return !job("third").status.reason.empty(); });
  EXPECT_EQ(state("third"), "Pending") << status_text("third");
  EXPECT_EQ(job("third").status.starts.value_or(0), 0) << status_text("third");
  expect_turns_between(from, now(), both, all_nodes());
  EXPECT_EQ(on_node(2, "sh -c 'kill -CONT $(cat /run/kubelet.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from, both));
  for (const std::string& name : both) expect_undisturbed(name);
}

// A preemptor fills every CPU of the nodes above jobs that fill them too: kubelet must not count.
TEST_F(Nodes, APreemptorStartsAboveSuspendedVictimsOnEveryCpu) {
  ASSERT_NO_FATAL_FAILURE(make_lane_partition(ns_ + "-one", {{"priorityTier", 10}}));
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
  // A long freeze: its log is there, and an exec into it gives up without harm.
  const std::string frozen = pod_on("victim", node(1))["metadata"]["name"];
  EXPECT_EQ(run_shell(kubectl("logs -n " + ns_ + " " + frozen)).exit_code, 0);
  const std::string enter = kubectl("exec -n " + ns_ + " " + frozen + " -- /kubegang-probe --help");
  EXPECT_EQ(run_shell("timeout 3 " + enter).exit_code, 124) << "it ran in a frozen pod";
  EXPECT_TRUE(is_frozen(pod_on("victim", node(1))));
  EXPECT_EQ(turns().overlap_since(from, {"victim", "urgent"}), Duration{});
  EXPECT_TRUE(turns().runs_at(now(), "urgent", milliseconds{500}));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("urgent")));
  ASSERT_NO_FATAL_FAILURE(wait_until("the victim runs again", [&] {
    return turns().runs_at(now(), "victim", milliseconds{500});
  }));
  const Output entered = run_shell("timeout 60 " + enter);
  EXPECT_EQ(entered.exit_code, 0) << entered.text;
  expect_undisturbed("victim");
}

// Many pods of two gangs on one node: all are switched, and the agent stays far below its limit of
// memory (64 MiB, values.yaml of the chart). With KUBEGANG_LONG nearly as many as kubelet takes.
TEST_F(Nodes, ManyPodsOnOneNodeTakeTurnsAndTheAgentStaysSmall) {
  const int pods_count = takes_its_time() ? 45 : 10;
  ASSERT_NO_FATAL_FAILURE(make_lane_partition(ns_ + "-one", {{"nodes", {{"hostlist", node(1)}}}}));
  const std::vector<std::string> both{"left", "right"};
  for (const std::string& name : both) {
    ASSERT_NO_FATAL_FAILURE(submit(
        {.name = name,
         .nodes_count = 1,
         .command = {"sh", "-c", "trap 'exit 0' TERM; sleep 10000 & wait"},
         .partition = ns_ + "-one",
         .patch = {
             {"spec",
              {{"podPolicy", "PerTask"},
               {"resources",
                {{"tasks", pods_count}, {"overcommit", true}, {"memoryPerNode", "1Gi"}}}}}}}));
  }
  for (const std::string& name : both) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  const auto frozen_of = [&](const std::string& name) {
    const auto all = pods(name);
    return std::count_if(all.begin(), all.end(), [&](const json& pod) { return is_frozen(pod); });
  };
  for (const std::string& name : both) {
    ASSERT_EQ(pods(name).size(), static_cast<std::size_t>(pods_count)) << name;
    ASSERT_NO_FATAL_FAILURE(wait_until("all of them are frozen at once",
                                       [&] { return frozen_of(name) == pods_count; }));
  }
  const json agent = agent_on(node(1));
  ASSERT_TRUE(agent.is_object());
  const std::int64_t resident = resident_kib(agent);
  RecordProperty("agent_resident_kib", std::to_string(resident));
  EXPECT_GT(resident, 0);
  EXPECT_LT(resident, 32 << 10) << "KiB";
  // It has not been killed and started again, for want of memory or anything else.
  EXPECT_EQ(agent["status"]["containerStatuses"][0]["lastState"], json::object());
  for (const std::string& name : both) EXPECT_EQ(job(name).status.starts.value_or(0), 1) << name;
}

}  // namespace
}  // namespace kubernetes
