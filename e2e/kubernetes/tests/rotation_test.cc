// Two gangs of all nodes take turns, and go on taking turns whatever happens to a node: a switch
// needs neither kubelet nor runtime nor agent, and their restarts disturb no gang (architecture.md
// 2 and 5). The rest: whole_cluster_test.cc.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/two_gangs.h"

namespace kubernetes {
namespace {

// All tests share the two gangs, which must not notice what happens to the nodes below them.
class Rotation : public TwoGangs {};

// The README's user story. Overlap is measured by the probes: 0.
TEST_F(Rotation, TwoGangsTakeTurnsAndTheQueueShowsWhoseTurnItIs) {
  const Output queue =
      run_shell("timeout 5 env " + kubectl_gang("queue --watch --namespace " + ns_) + " | cat");
  std::istringstream lines{queue.text};
  int shown = 0;
  std::map<std::string, int> of_state;  // R, S
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields{line};
    std::string id, partition, name, user, job_state;
    fields >> id >> partition >> name >> user >> job_state;
    if (id == "JOBID") {
      // The header begins each picture.
      ++shown;
    } else {
      ++of_state[job_state];
      names.insert(name);
    }
  }
  EXPECT_GE(shown, 2) << queue.text;
  EXPECT_EQ(names, std::set<std::string>(kBoth.begin(), kBoth.end())) << queue.text;
  EXPECT_EQ(of_state, (std::map<std::string, int>{{"R", shown}, {"S", shown}})) << queue.text;
  expect_nobody_noticed();
  expect_turns_between(from_, now(), kBoth, all_nodes());
}

// README and getting-started.md show this to users without the plugin: the operator's image has the
// command, and the operator may read what it shows.
TEST_F(Rotation, TheQueueIsShownByTheOperatorsPod) {
  const Output queue = run_shell(
      "timeout 60 " +
      kubectl("exec -n kubegang-system deploy/kubegang-operator -- /kubectl-gang queue -A"));
  EXPECT_EQ(queue.exit_code, 0) << queue.text;
  for (const std::string& name : kBoth) {
    EXPECT_NE(queue.text.find(name), std::string::npos) << queue.text;
  }
}

// Logs come from the runtime's files and need no process of the pod. An exec starts a process in
// the frozen cgroup, so it stands still until the pod's next turn, and then works.
TEST_F(Rotation, LogsOfAFrozenPodAreReadAndExecWaitsForItsSlot) {
  const json pod = frozen_pod_on(node(1));
  ASSERT_TRUE(pod.is_object());
  const std::string name = pod["metadata"]["name"];
  const Output logs = run_shell(kubectl("logs -n " + ns_ + " " + name));
  EXPECT_EQ(logs.exit_code, 0) << logs.text;
  EXPECT_NE(logs.text.find("kubegang-probe: job"), std::string::npos) << logs.text;
  // The probe answers by itself, so no shell is needed in its image.
  const Output exec = run_shell(
      "timeout 60 " + kubectl("exec -n " + ns_ + " " + name + " -- /kubegang-probe --help"));
  EXPECT_EQ(exec.exit_code, 0) << exec.text;
  expect_nobody_noticed();
}

// A DaemonSet's pods on all nodes and a pod of the same namespace on one say themselves that they
// ran all the time. The stamps of <name>-<…>-<…> are those of the job <name>.
TEST_F(Rotation, OtherPeoplesPodsAndDaemonSetsOnTheNodesAreLeftAlone) {
  json spec = job_object({.name = "template"})["spec"]["template"]["spec"];
  spec["containers"][0]["resources"] = {{"requests", {{"cpu", "10m"}, {"memory", "16Mi"}}}};
  spec["terminationGracePeriodSeconds"] = 0;
  json pod_spec = spec, set_spec = spec;
  pod_spec["nodeName"] = node(1);
  set_spec["affinity"] = {{"nodeAffinity",
                           {{"requiredDuringSchedulingIgnoredDuringExecution",
                             {{"nodeSelectorTerms",
                               {{{"matchExpressions",
                                  {{{"key", "kubernetes.io/hostname"},
                                    {"operator", "In"},
                                    {"values", all_nodes()}}}}}}}}}}}};
  const json labels{{"app", "other"}}, set_labels{{"app", "other"}, {"set", "daemon-set"}};
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "apps/v1"},
             {"kind", "DaemonSet"},
             {"metadata", {{"name", "daemon-set"}, {"namespace", ns_}}},
             {"spec",
              {{"selector", {{"matchLabels", set_labels}}},
               {"template", {{"metadata", {{"labels", set_labels}}}, {"spec", set_spec}}}}}}));
  ASSERT_NO_FATAL_FAILURE(
      apply({{"apiVersion", "v1"},
             {"kind", "Pod"},
             {"metadata", {{"name", "alone-pod-0"}, {"namespace", ns_}, {"labels", labels}}},
             {"spec", pod_spec}}));
  const std::string others_path = "/api/v1/namespaces/" + ns_ + "/pods?labelSelector=app=other";
  ASSERT_NO_FATAL_FAILURE(wait_until("the other people's pods run", [&] {
    const std::vector<json> others = list(others_path);
    return others.size() == 4 && std::all_of(others.begin(), others.end(), [](const json& pod) {
             return pod["status"].value("phase", "") == "Running";
           });
  }));
  const Instant from = now();
  const Instant to = from + 8 * turns().slice();
  ASSERT_NO_FATAL_FAILURE(wait_until("they ran for eight slices", [&] { return now() >= to; }));
  for (const std::string& name : all_nodes()) expect_ran_without_a_break(from, to, "daemon", name);
  expect_ran_without_a_break(from, to, "alone", node(1));
  expect_turns_between(from, to, kBoth, all_nodes());
  remove("/apis/apps/v1/namespaces/" + ns_ + "/daemonsets/daemon-set");
  remove("/api/v1/namespaces/" + ns_ + "/pods/alone-pod-0");
  wait_until("their pods are gone", [&] { return list(others_path).empty(); });
  expect_nobody_noticed();
}

// A new kubelet finds pods that do not answer and must not take them for dead; the agent does not
// need kubelet to switch.
TEST_F(Rotation, KubeletRestartsWhilePodsAreFrozen) {
  ASSERT_TRUE(frozen_pod_on(node(1)).is_object());
  ASSERT_EQ(on_node(1, "sh -c 'kill -9 $(cat /run/kubelet.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(run_third_gang());  // starts a pod through the new kubelet
  expect_nobody_noticed();
}

// The same of containerd, whose shims, and so the containers, outlive it.
TEST_F(Rotation, TheContainerRuntimeRestartsWhilePodsAreFrozen) {
  ASSERT_TRUE(frozen_pod_on(node(2)).is_object());
  ASSERT_EQ(on_node(2, "sh -c 'kill -9 $(cat /run/containerd.pid)'").exit_code, 0);
  // A pod that kubelet cannot start at once it tries again ten seconds later.
  const std::string pod = pod_on("first", node(2))["metadata"]["name"];
  ASSERT_NO_FATAL_FAILURE(wait_until("kubelet speaks with the new runtime", [&] {
    return run_shell(kubectl("logs --tail=1 -n " + ns_ + " " + pod)).exit_code == 0;
  }));
  ASSERT_NO_FATAL_FAILURE(run_third_gang());
  expect_nobody_noticed();
}

// Only that node is thawed: the gangs share its CPUs, and on the others they take turns as before.
TEST_F(Rotation, TheKillSwitchOfANodeThawsIt) {
  ASSERT_NO_FATAL_FAILURE(
      patch(node_path(1), {{"metadata", {{"annotations", {{"kubegang.io/freeze", "disabled"}}}}}}));
  const json first = pod_on("first", node(1)), second = pod_on("second", node(1));
  ASSERT_NO_FATAL_FAILURE(wait_until("both gangs run on the node", [&] {
    return !devcluster::eventually([&] { return is_frozen(first) || is_frozen(second); },
                                   seconds{2});
  }));
  const Instant to = now();
  const Instant from = to - milliseconds{1500};
  for (const std::string& name : kBoth) expect_ran_without_a_break(from, to, name, node(1));
  // If the machine was busy in a slot, its owner is unknown, so there are some more.
  const Instant later = to + 6 * turns().slice();
  ASSERT_NO_FATAL_FAILURE(wait_until("six more slices", [&] { return now() >= later; }));
  for (const int other : {2, 3}) {
    for (const std::string& name : kBoth) {
      const auto slots = turns().owners_of_slots(node(other), from, later, kBoth);
      EXPECT_GE(std::count(slots.begin(), slots.end(), name), 1) << name << " on " << node(other);
    }
  }
  ASSERT_NO_FATAL_FAILURE(
      patch(node_path(1), {{"metadata", {{"annotations", {{"kubegang.io/freeze", nullptr}}}}}}));
  expect_turns_again();
}

}  // namespace
}  // namespace kubernetes
