// Two gangs of all nodes take turns, and go on taking turns through everything that befalls a node:
// neither kubelet nor runtime and agent are needed for a switch, and who restarts them disturbs
// nobody (architecture.md 2 and 5). The rest: whole_cluster_test.cc.
#include <signal.h>

#include <thread>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/two_gangs.h"

namespace kubernetes {
namespace {

class Rotation : public TwoGangs {};

// The README's user story. Overlap is measured by the probes: 0.
TEST_F(Rotation, TwoGangsTakeTurns) {
  const Output queue = run(kubectl_gang("queue -n " + ns_));
  EXPECT_EQ(queue.exit_code, 0) << queue.text;
  for (const std::string& name : kBoth) {
    EXPECT_NE(queue.text.find(name), std::string::npos) << queue.text;
  }
  expect_nobody_noticed();
}

TEST_F(Rotation, LogsOfAFrozenPodAreReadAndExecWaitsForItsSlot) {
  const json pod = frozen_pod_on(node(1));
  ASSERT_TRUE(pod.is_object());
  const std::string name = pod["metadata"]["name"];
  const Output logs = run(kubectl("logs -n " + ns_ + " " + name));
  EXPECT_EQ(logs.exit_code, 0) << logs.text;
  EXPECT_NE(logs.text.find("kubegang-probe: job"), std::string::npos) << logs.text;
  const Output exec =
      run("timeout 60 " + kubectl("exec -n " + ns_ + " " + name + " -- /kubegang-probe --help"));
  EXPECT_EQ(exec.exit_code, 0) << exec.text;
  expect_nobody_noticed();
}

TEST_F(Rotation, OtherPeoplesPodsOnTheNodesAreLeftAlone) {
  json foreign{{"apiVersion", "v1"},
               {"kind", "Pod"},
               {"metadata", {{"name", "foreign"}, {"namespace", ns_}}},
               {"spec",
                {{"nodeName", node(1)},
                 {"terminationGracePeriodSeconds", 0},
                 {"containers",
                  {{{"name", "main"},
                    {"image", kBusyboxImage},
                    {"command", {"sh", "-c", "while :; do echo x >/dev/null; sleep 0.01; done"}},
                    {"resources", {{"requests", {{"cpu", "100m"}}}}}}}}}}};
  ASSERT_NO_FATAL_FAILURE(apply(foreign));
  json pod;
  ASSERT_NO_FATAL_FAILURE(wait_until("the foreign pod runs", [&] {
    pod = get("/api/v1/namespaces/" + ns_ + "/pods/foreign");
    return pod["status"].value("phase", "") == "Running";
  }));
  const Instant to = now() + seconds{2};
  while (now() < to) {
    ASSERT_FALSE(is_frozen(pod));
    std::this_thread::yield();
  }
  remove("/api/v1/namespaces/" + ns_ + "/pods/foreign");
  expect_nobody_noticed();
}

TEST_F(Rotation, KubeletRestartsWhilePodsAreFrozen) {
  ASSERT_TRUE(frozen_pod_on(node(1)).is_object());
  ASSERT_EQ(on_node(1, "sh -c 'kill -9 $(cat /run/kubelet.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(run_third_gang());  // starts a pod through the new kubelet
  expect_nobody_noticed();
}

TEST_F(Rotation, TheContainerRuntimeRestartsWhilePodsAreFrozen) {
  ASSERT_TRUE(frozen_pod_on(node(2)).is_object());
  ASSERT_EQ(on_node(2, "sh -c 'kill -9 $(cat /run/containerd.pid)'").exit_code, 0);
  // A pod that kubelet cannot start at once it tries again ten seconds later.
  const std::string pod = pod_on("first", node(2))["metadata"]["name"];
  ASSERT_NO_FATAL_FAILURE(wait_until("kubelet speaks with the new runtime", [&] {
    return run(kubectl("logs --tail=1 -n " + ns_ + " " + pod)).exit_code == 0;
  }));
  ASSERT_NO_FATAL_FAILURE(run_third_gang());
  expect_nobody_noticed();
}

// Its pods stay as they were until the container is back; then it goes on by its journal.
TEST_F(Rotation, AnAgentsContainerThatIsKilledTakesItsPodsUpAgain) {
  const auto agent = [&] {
    const json list = get(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                          "/pods?labelSelector=app.kubernetes.io/component=agent");
    for (const json& pod : list["items"]) {
      if (pod["spec"]["nodeName"] == node(3)) return pod;
    }
    return json{};
  };
  const json before = agent();
  ASSERT_TRUE(before.is_object());
  const auto restarts = [](const json& pod) {
    return pod["status"]["containerStatuses"][0]["restartCount"].get<int>();
  };
  for (const int pid : processes_of(before)) ::kill(pid, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(wait_until("kubelet has restarted it", [&] {
    const json now_is = agent();
    return now_is.is_object() && restarts(now_is) > restarts(before) &&
           now_is["status"]["containerStatuses"][0]["ready"] == true;
  }));
  expect_nobody_noticed();
}

TEST_F(Rotation, TheKillSwitchOfANodeThawsIt) {
  ASSERT_NO_FATAL_FAILURE(
      patch(node_path(1), {{"metadata", {{"annotations", {{"kubegang.io/freeze", "disabled"}}}}}}));
  const json first = pod_on("first", node(1)), second = pod_on("second", node(1));
  ASSERT_NO_FATAL_FAILURE(wait_until("both gangs run on the node", [&] {
    return !devcluster::eventually([&] { return is_frozen(first) || is_frozen(second); },
                                   seconds{2});
  }));
  ASSERT_NO_FATAL_FAILURE(
      patch(node_path(1), {{"metadata", {{"annotations", {{"kubegang.io/freeze", nullptr}}}}}}));
  expect_turns_again();
}

}  // namespace
}  // namespace kubernetes
