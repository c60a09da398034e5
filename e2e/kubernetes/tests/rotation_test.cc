// Two gangs of all nodes take turns, and go on taking turns through everything that befalls a
// cluster: neither the control plane nor kubelet, runtime and agents are needed for a switch, and
// who restarts them disturbs nobody (architecture.md 2 and 5). The tests share the two gangs, which
// prove by themselves that nothing disturbed them.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/kubernetes/tests/harness.h"

namespace kubernetes {
namespace {

const std::vector<std::string> kBoth{"first", "second"};

class Rotation : public Cluster {
 protected:
  static constexpr const char* kNamespace = "rotation";

  void SetUp() override {
    if (state_directory().empty()) GTEST_SKIP() << kStateVariable << " names no cluster";
    if (!is_made_) {
      is_made_ = true;
      ASSERT_NO_FATAL_FAILURE(begin(kNamespace));
      for (const std::string& name : kBoth) ASSERT_NO_FATAL_FAILURE(submit({.name = name}));
      for (const std::string& name : kBoth) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
    }
    ns_ = kNamespace;
    stamps_in_ = state_directory() + "/stamps/" + ns_;
    ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
    from_ = now();
  }
  void TearDown() override {
    if (!HasFailure()) return;
    show_failure();
    end(ns_);  // the next test begins afresh
    is_made_ = false;
  }
  static void TearDownTestSuite() {
    if (is_made_) end(kNamespace);
    is_made_ = false;
  }

  // What every test of this suite ends with.
  void expect_nobody_noticed() {
    ASSERT_NO_FATAL_FAILURE(expect_turns_since(from_, kBoth));
    for (const std::string& name : kBoth) expect_undisturbed(name);
  }

  // The pod of either gang on the node at a moment when it is frozen.
  json frozen_pod_on(const std::string& node) {
    json found;
    wait_until("a pod on " + node + " is frozen", [&] {
      for (const std::string& name : kBoth) {
        const json pod = pod_on(name, node);
        if (pod.is_object() && is_frozen(pod)) found = pod;
      }
      return found.is_object();
    });
    return found;
  }
  std::string holder() {
    const json lease = get(std::string{"/apis/coordination.k8s.io/v1/namespaces/"} +
                           kSystemNamespace + "/leases/kubegang-operator");
    return lease.is_object() ? lease["spec"].value("holderIdentity", "") : "";
  }
  std::vector<json> operators() {
    const json list = get(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                          "/pods?labelSelector=app.kubernetes.io/component=operator");
    std::vector<json> out;
    if (list.is_object()) out.assign(list["items"].begin(), list["items"].end());
    return out;
  }
  // The leader's pod.
  json leader() {
    json found;
    wait_until("an operator leads", [&] {
      const std::string identity = holder();
      for (const json& pod : operators()) {
        if (!identity.empty() && identity.starts_with(pod["metadata"]["name"].get<std::string>()))
          found = pod;
      }
      return found.is_object();
    });
    return found;
  }
  std::int64_t term() {
    std::int64_t highest = 0;
    for (const auto& one : timetables()) highest = std::max(highest, one.spec.term);
    return highest;
  }
  // A third gang comes and goes: the operator works.
  void expect_operator_works() {
    ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
    ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
    ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  }

  Instant from_{};

 private:
  static bool is_made_;
};

bool Rotation::is_made_ = false;

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
  const json pod = frozen_pod_on("n1");
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
                {{"nodeName", "n1"},
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
  ASSERT_TRUE(frozen_pod_on("n1").is_object());
  ASSERT_EQ(on_node(1, "sh -c 'kill -9 $(cat /run/kubelet.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(expect_operator_works());  // starts a pod through the new kubelet
  expect_nobody_noticed();
}

TEST_F(Rotation, TheContainerRuntimeRestartsWhilePodsAreFrozen) {
  ASSERT_TRUE(frozen_pod_on("n2").is_object());
  ASSERT_EQ(on_node(2, "sh -c 'kill -9 $(cat /run/containerd.pid)'").exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(expect_operator_works());
  expect_nobody_noticed();
}

TEST_F(Rotation, AnAgentUpgradeThawsAndTakesUpTheRotationAgain) {
  ASSERT_EQ(run(kubectl("rollout restart daemonset/kubegang-agent -n kubegang-system")).exit_code,
            0);
  const Output done =
      run(kubectl("rollout status daemonset/kubegang-agent -n kubegang-system --timeout=120s"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  // A stopped agent thaws: until its successor has taken over, both gangs run.
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  from_ = now();
  expect_nobody_noticed();
}

// Operators and agents are replaced while the gangs take turns and a third one is being started.
TEST_F(Rotation, AHelmUpgradeLosesNoJobAndLeavesNoPodFrozen) {
  const std::string helm = "helm --kubeconfig " + state_directory() + "/pki/admin.kubeconfig ";
  const std::string upgrade = helm + "upgrade kubegang " KUBEGANG_SOURCE_DIR
                                     "/charts/kubegang -n kubegang-system --reuse-values --wait "
                                     "--timeout 180s --set agent.resources.requests.memory=";
  const auto uids = [&] {
    std::set<std::string> all;
    const json list =
        get(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
            "/pods?labelSelector=app.kubernetes.io/component%20in%20(operator,agent)");
    for (const json& pod : list["items"]) all.insert(pod["metadata"]["uid"].get<std::string>());
    return all;
  };
  const std::set<std::string> before = uids();
  ASSERT_EQ(before.size(), 5U);  // two operators, three agents
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
  const Output done = run(upgrade + "25Mi --set operator.resources.requests.memory=65Mi");
  ASSERT_EQ(done.exit_code, 0) << done.text;
  ASSERT_NO_FATAL_FAILURE(wait_until("all of them are new ones", [&] {
    const std::set<std::string> now_are = uids();
    return now_are.size() == before.size() &&
           std::none_of(before.begin(), before.end(),
                        [&](const std::string& uid) { return now_are.contains(uid); });
  }));
  // All three have their turns on all nodes: no pod of theirs was left frozen.
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second", "third"}));
  expect_undisturbed("third");
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  const Output back = run(upgrade + "24Mi --set operator.resources.requests.memory=64Mi");
  ASSERT_EQ(back.exit_code, 0) << back.text;
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  from_ = now();
  expect_nobody_noticed();
}

// Its pods stay as they were until the container is back; then it goes on by its journal.
TEST_F(Rotation, AnAgentsContainerThatIsKilledTakesItsPodsUpAgain) {
  const auto agent = [&] {
    const json list = get(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
                          "/pods?labelSelector=app.kubernetes.io/component=agent");
    for (const json& pod : list["items"]) {
      if (pod["spec"]["nodeName"] == "n3") return pod;
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
  ASSERT_NO_FATAL_FAILURE(patch(
      "/api/v1/nodes/n1", {{"metadata", {{"annotations", {{"kubegang.io/freeze", "disabled"}}}}}}));
  const json first = pod_on("first", "n1"), second = pod_on("second", "n1");
  ASSERT_NO_FATAL_FAILURE(wait_until("both gangs run on n1", [&] {
    return !devcluster::eventually([&] { return is_frozen(first) || is_frozen(second); },
                                   seconds{2});
  }));
  ASSERT_NO_FATAL_FAILURE(patch(
      "/api/v1/nodes/n1", {{"metadata", {{"annotations", {{"kubegang.io/freeze", nullptr}}}}}}));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  from_ = now();
  expect_nobody_noticed();
}

TEST_F(Rotation, TheOtherOperatorTakesOverWhenTheLeaderDies) {
  const json old = leader();
  ASSERT_TRUE(old.is_object());
  const std::int64_t old_term = term();
  const std::string identity = holder();
  for (const int pid : processes_of(old)) ::kill(pid, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(
      wait_until("somebody else leads", [&] { return !holder().empty() && holder() != identity; }));
  ASSERT_NO_FATAL_FAILURE(expect_operator_works());
  EXPECT_GT(term(), old_term);
  expect_nobody_noticed();
}

TEST_F(Rotation, ALeaderThatWasPausedCannotUndoItsSuccessorsWork) {
  const json old = leader();
  ASSERT_TRUE(old.is_object());
  const std::string name = old["metadata"]["name"];
  const auto restarts = [&] {
    const json pod = get(std::string{"/api/v1/namespaces/"} + kSystemNamespace + "/pods/" + name);
    return pod.is_object() ? pod["status"]["containerStatuses"][0]["restartCount"].get<int>() : -1;
  };
  const int restarts_before = restarts();
  const std::int64_t old_term = term();
  const std::string identity = holder();
  const std::vector<int> processes = processes_of(old);
  ASSERT_FALSE(processes.empty());
  for (const int pid : processes) ::kill(pid, SIGSTOP);
  ASSERT_NO_FATAL_FAILURE(
      wait_until("somebody else leads", [&] { return !holder().empty() && holder() != identity; }));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  const std::int64_t new_term = term();
  EXPECT_GT(new_term, old_term);
  for (const int pid : processes) ::kill(pid, SIGCONT);
  ASSERT_NO_FATAL_FAILURE(
      wait_until("it cannot renew and ends", [&] { return restarts() > restarts_before; }));
  EXPECT_EQ(term(), new_term);
  expect_undisturbed("third");
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang is gone", [&] { return pods("third").empty(); }));
  expect_nobody_noticed();
}

TEST_F(Rotation, TheApiServerRestarts) {
  const Output restarted = run("kill -9 $(cat " + state_directory() + "/pids/kube-apiserver)");
  ASSERT_EQ(restarted.exit_code, 0) << restarted.text;
  // Nobody answers: the gangs go on.
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from_, kBoth));
  const Output up = script("apiserver-up");
  ASSERT_EQ(up.exit_code, 0) << up.text;
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(expect_operator_works());
  expect_nobody_noticed();
}

// Longer than the operators' lease (values.yaml), so that they end; with KUBEGANG_LONG a minute.
TEST_F(Rotation, EtcdIsGoneForAWhile) {
  const std::string etcd = "$(cat " + state_directory() + "/pids/etcd)";
  const auto gone = std::getenv("KUBEGANG_LONG") != nullptr ? seconds{60} : seconds{10};
  ASSERT_EQ(run("kill -STOP " + etcd).exit_code, 0);
  const Instant until = now() + gone;
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "etcd was gone long enough", [&] { return now() >= until; }, 2 * gone));
  EXPECT_EQ(turns().overlap_since(from_, kBoth), Duration{});
  ASSERT_EQ(run("kill -CONT " + etcd).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(expect_operator_works());
  expect_nobody_noticed();
}

}  // namespace
}  // namespace kubernetes
