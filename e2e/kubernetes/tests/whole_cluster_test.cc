// Faults and upgrades of the parts that all gangs of a cluster share: the release, the agents'
// DaemonSet, the operators, the API server, etcd. Two gangs of all nodes go on taking turns
// meanwhile, because a switch needs none of these parts (architecture.md 2 and 5). The tests run by
// themselves.
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "e2e/kubernetes/tests/two_gangs.h"
#include "e2e/probe/analysis.h"

namespace kubernetes {
namespace {

class WholeCluster : public Alone<TwoGangs> {
 protected:
  // A test that failed may have left a part of the control plane stopped.
  void TearDown() override {
    if (HasFailure()) {
      leave_out("");
      (void)run_shell("kill -CONT $(cat " + state_directory() + "/pids/etcd)");
      if (!call(kube::Method::kGet, "/version").ok()) (void)script("apiserver-up");
    }
    Alone<TwoGangs>::TearDown();
  }
  std::string holder() {
    const json lease = get(std::string{"/apis/coordination.k8s.io/v1/namespaces/"} +
                           kSystemNamespace + "/leases/kubegang-operator");
    return lease.is_object() ? lease["spec"].value("holderIdentity", "") : "";
  }
  // Returns the leader's pod.
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
  // The agents' DaemonSet has no pod on that node; "" = it has one on each.
  void leave_out(const std::string& node) {
    const json term{
        {"matchFields", {{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {node}}}}}};
    const json affinity{
        {"nodeAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", {term}}}}}}};
    patch("/apis/apps/v1/namespaces/kubegang-system/daemonsets/kubegang-agent",
          {{"spec",
            {{"template", {{"spec", {{"affinity", node.empty() ? json(nullptr) : affinity}}}}}}}});
  }
  // To the same chart with other values.
  static void upgrade(const std::string& values) {
    const Output done = helm("upgrade kubegang " KUBEGANG_SOURCE_DIR
                             "/charts/kubegang -n kubegang-system --reuse-values --wait "
                             "--timeout 180s " +
                             values);
    ASSERT_EQ(done.exit_code, 0) << done.text;
  }
};

// `helm test` is what a newcomer runs first. It must show the job's end, and clean up after itself.
TEST_F(WholeCluster, HelmTestRunsAGangShowsItsLogAndLeavesNoJob) {
  // Those of the test, beside the two gangs.
  const auto its_jobs = [&] {
    std::vector<json> found;
    for (const json& one : list("/apis/kubegang.io/v1alpha1/namespaces/" + ns_ + "/jobs")) {
      if (one["metadata"]["name"].get<std::string>().starts_with("kubegang-test-")) {
        found.push_back(one);
      }
    }
    return found;
  };
  ASSERT_NO_FATAL_FAILURE(upgrade("--set test.namespace=" + ns_ + " --set test.partition=" + ns_));
  const Output tested = helm("test kubegang -n kubegang-system --logs");
  EXPECT_EQ(tested.exit_code, 0) << tested.text;
  const std::size_t log = tested.text.find("POD LOGS: kubegang-test");
  ASSERT_NE(log, std::string::npos) << tested.text;
  // As submit --wait says it.
  EXPECT_NE(tested.text.find("job.kubegang.io/kubegang-test-", log), std::string::npos)
      << tested.text;
  EXPECT_NE(tested.text.find(" Completed\n", log), std::string::npos) << tested.text;
  const std::vector<json> left = its_jobs();
  ASSERT_EQ(left.size(), 1U) << json(left).dump(1);
  const auto finished = kube::decode<kube::Job>(left[0]);
  ASSERT_TRUE(finished.ok()) << finished.error().message;
  EXPECT_EQ(finished->spec.lifecycle.ttl_after_finished, seconds{60});
  // The test does not wait for that minute: the time to live may change after the end, too.
  patch(job_path(finished->metadata.name),
        {{"spec", {{"lifecycle", {{"ttlAfterFinished", "1s"}}}}}});
  wait_until("its job is gone", [&] { return its_jobs().empty(); });
  upgrade("--set test.namespace=default --set test.partition=");
}

// A stopped agent thaws: until its successor on that node has taken over, both gangs run there. One
// node after the other (it is Ready a moment before its first switch); nowhere else they share
// anything, and no pod is left frozen.
TEST_F(WholeCluster, AnAgentUpgradeThawsAndTakesUpTheRotationAgain) {
  std::map<std::string, std::string> before;  // the agents' uids
  for (const std::string& name : all_nodes()) before[name] = agent_on(name)["metadata"]["uid"];
  ASSERT_EQ(
      run_shell(kubectl("rollout restart daemonset/kubegang-agent -n kubegang-system")).exit_code,
      0);
  const Output done = run_shell(
      kubectl("rollout status daemonset/kubegang-agent -n kubegang-system --timeout=120s"));
  ASSERT_EQ(done.exit_code, 0) << done.text;
  const Instant upgraded = now();
  for (const std::string& name : all_nodes()) {
    EXPECT_NE(agent_on(name)["metadata"]["uid"], before[name]) << name;
  }
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  const probe::Gang first = turns().stamps().gang("first"),
                    second = turns().stamps().gang("second");
  const Duration moment = 2 * turns().slice();
  std::vector<probe::Interval> shared;  // of each node: from the first to the last time
  for (const std::string& name : all_nodes()) {
    // Each of them ran again and again, at most a turn and a half of the other's apart.
    for (const std::string& gang : kBoth) {
      expect_ran_without_a_break(from_, upgraded, gang, name, turns().slice() * 3);
    }
    std::vector<probe::Interval> both =
        probe::overlaps(first.nodes.at(name), second.nodes.at(name));
    std::erase_if(both, [&](const probe::Interval& one) { return one.to <= from_; });
    ASSERT_FALSE(both.empty()) << "nobody was thawed on " << name;
    shared.push_back({both.front().from, both.back().to});
  }
  std::sort(shared.begin(), shared.end(),
            [](const probe::Interval& a, const probe::Interval& b) { return a.from < b.from; });
  for (std::size_t i = 1; i < shared.size(); ++i) {
    EXPECT_LT(shared[i - 1].to, shared[i].from + moment) << "shared on two nodes at once";
  }
  EXPECT_LT(shared.back().to, upgraded + moment);
  expect_turns_again();
}

// The DaemonSet leaves a node out: no agent switches there, so all jobs there run at once,
// and a third gang must not be stacked upon it. It starts when the agent is back.
TEST_F(WholeCluster, ANodeWithoutAnAgentTakesNoMoreJobsThatShareIt) {
  std::vector<std::string> others = all_nodes();
  const std::string bare = others.back();
  others.pop_back();
  ASSERT_NO_FATAL_FAILURE(leave_out(bare));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the agent is gone", [&] { return agent_on(bare).is_null(); }));
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
  std::string explained;
  wait_until("the third gang is told why it waits", [&] {
    explained = run_shell(kubectl_gang("explain third -n " + ns_)).text;
    return explained.find("NoAgent") != std::string::npos;
  });
  EXPECT_FALSE(HasFailure()) << explained;
  EXPECT_EQ(state("third"), "Pending") << status_text("third");
  EXPECT_TRUE(pods("third").empty());
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth, others));
  ASSERT_NO_FATAL_FAILURE(leave_out(""));
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second", "third"}));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  expect_turns_again();
}

// Operators and agents are replaced while the gangs take turns and a third one is being started.
TEST_F(WholeCluster, AHelmUpgradeLosesNoJobAndLeavesNoPodFrozen) {
  const auto uids = [&] {
    std::set<std::string> all;
    for (const json& pod :
         list(std::string{"/api/v1/namespaces/"} + kSystemNamespace +
              "/pods?labelSelector=app.kubernetes.io/component%20in%20(operator,agent)")) {
      all.insert(pod["metadata"]["uid"].get<std::string>());
    }
    return all;
  };
  const std::set<std::string> before = uids();
  ASSERT_EQ(before.size(), 5U);  // two operators, three agents
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
  // Other requests than those of now, also when this is repeated.
  const std::int64_t generation =
      get("/apis/apps/v1/namespaces/kubegang-system/daemonsets/kubegang-agent")["metadata"].value(
          "generation", std::int64_t{0});
  ASSERT_NO_FATAL_FAILURE(upgrade(
      "--set agent.resources.requests.memory=" + std::to_string(24 + generation) +
      "Mi --set operator.resources.requests.memory=" + std::to_string(64 + generation) + "Mi"));
  ASSERT_NO_FATAL_FAILURE(wait_until("all of them are new ones", [&] {
    const std::set<std::string> now_are = uids();
    return now_are.size() == before.size() &&
           std::none_of(before.begin(), before.end(),
                        [&](const std::string& uid) { return now_are.contains(uid); });
  }));
  // All three have their turns on all nodes: none of their pods was left frozen.
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second", "third"}));
  expect_undisturbed("third");
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  expect_turns_again();
}

// Killed without a word: the successor waits until the Lease has run out, takes a higher term, and
// starts jobs. The gangs notice nothing.
TEST_F(WholeCluster, TheOtherOperatorTakesOverWhenTheLeaderDies) {
  const json old = leader();
  ASSERT_TRUE(old.is_object());
  const std::int64_t old_term = term();
  const std::string identity = holder();
  for (const int pid : processes_of(old)) ::kill(pid, SIGKILL);
  ASSERT_NO_FATAL_FAILURE(
      wait_until("somebody else leads", [&] { return !holder().empty() && holder() != identity; }));
  ASSERT_NO_FATAL_FAILURE(run_third_gang());
  EXPECT_GT(term(), old_term);
  expect_nobody_noticed();
}

// The old leader wakes up with decisions in its hands. Its term is lower, so the API server refuses
// what it writes, and it ends when it finds that it cannot renew.
TEST_F(WholeCluster, ALeaderThatWasPausedCannotUndoItsSuccessorsWork) {
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

// Without an API server the agents go on with what is published, for as long as it takes.
TEST_F(WholeCluster, TheApiServerRestarts) {
  const Output restarted =
      run_shell("kill -9 $(cat " + state_directory() + "/pids/kube-apiserver)");
  ASSERT_EQ(restarted.exit_code, 0) << restarted.text;
  // Without an answer the gangs go on.
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  expect_turns_between(from_, now(), kBoth, all_nodes());
  const Output up = script("apiserver-up");
  ASSERT_EQ(up.exit_code, 0) << up.text;
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(run_third_gang());
  expect_nobody_noticed();
}

// Longer than it takes the operators to end (values.yaml) and the nodes to be taken for lost
// (control-plane-up): what a minute is with the usual times. With KUBEGANG_LONG a minute.
TEST_F(WholeCluster, EtcdIsGoneForAWhile) {
  const std::string etcd = "$(cat " + state_directory() + "/pids/etcd)";
  const auto gone = takes_its_time() ? seconds{60} : seconds{20};
  ASSERT_EQ(run_shell("kill -STOP " + etcd).exit_code, 0);
  const Instant from = now(), until = from + gone;
  ASSERT_NO_FATAL_FAILURE(wait_until(
      "etcd was gone long enough", [&] { return now() >= until; }, 2 * gone));
  expect_turns_between(from, until, kBoth, all_nodes());
  ASSERT_EQ(run_shell("kill -CONT " + etcd).exit_code, 0);
  ASSERT_NO_FATAL_FAILURE(wait_nodes_ready());
  ASSERT_NO_FATAL_FAILURE(run_third_gang());
  expect_nobody_noticed();
}

}  // namespace
}  // namespace kubernetes
