// The effects of a configuration on jobs, with real processes: cores, memory, tiers, QOS, and the
// ways to be preempted (slurm-semantics.md 14.4 to 14.9). The configurations are those of
// examples/demo/, with shorter times. The turns are read from the NodeTimetables, and
// the kernel's obedience from the cgroups.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/devcluster/testing/eventually.h"
#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::UnorderedElementsAre;
using Names = std::vector<std::string>;
using Slot = std::set<std::string>;

// Jobs whose turns are read from objects and cgroups need no probe.
const Names kForever = {"sleep", "1000"};

// Tests of what a user may ask of a configuration and only processes can show: that the job which
// should stand still does, and the one that should not is left alone. Decisions by themselves are
// the scheduler's tests.
class PolicyScenario : public Scenario {
 protected:
  // Returns false if the test ends here, because it is skipped or the cluster did not start.
  bool begin(const ClusterOptions& options) {
    start(options);
    return !IsSkipped() && !HasFatalFailure();
  }
  void wait_all_ready(const Names& names) {
    for (const std::string& name : names) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
  }
  // n12 to n14 have a lower tier, whose jobs end with a grace time, under a higher one; on n15 jobs
  // take turns. Jobs of QOS shielded are exempt from preemption for 4 s.
  void apply_policies_of_ending() {
    apply({{"apiVersion", "kubegang.io/v1alpha1"},
           {"kind", "QOS"},
           {"metadata", {{"name", "shielded"}}},
           {"spec", {{"preemptExemptTime", "4s"}}}});
    apply(partition(
        "low",
        {{"nodes", {{"hostlist", "n[12-14]"}}}, {"preemptMode", "Cancel"}, {"graceTime", "2s"}}));
    apply(partition("high", {{"nodes", {{"hostlist", "n[12-14]"}}}, {"priorityTier", 2}}));
    apply(partition("shared", {{"nodes", {{"hostlist", "n15"}}},
                               {"overSubscribe", {{"policy", "Force"}, {"maxShare", 2}}}}));
  }
  // Returns a Job that names its nodes: which nodes take jobs first differs from run to run.
  static json on_nodes(const std::string& hostlist, json spec = json::object()) {
    spec["placement"] = {{"hostlist", hostlist}};
    return {{"spec", std::move(spec)}};
  }
  // A limit is on the time that a job runs; a job that waits for its turn does not use it up. The
  // job runs before it is ready, too, so its time is counted from `submitted`.
  void expect_timeout_after_three_seconds(const std::string& name, Instant submitted) {
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Timeout"));
    const kube::JobStatus status = job(name).status;
    EXPECT_GE(status.run_time->elapsed, seconds{3}) << name;
    EXPECT_LT(status.run_time->elapsed, seconds{4}) << name;
    EXPECT_GE(*status.end_time - submitted, status.run_time->elapsed + milliseconds{500}) << name;
  }
  // Returns the cores that the job has on each of its nodes, the same everywhere.
  std::string cores_of(const std::string& name) {
    const auto allocation = job(name).status.allocation;
    // Nodes with equal shares are one entry, so more than one means that they differ.
    return allocation && allocation->shares.size() == 1 ? allocation->shares[0].cores : "?";
  }
  std::string nodes_of(const std::string& name) {
    const auto allocation = job(name).status.allocation;
    return allocation ? allocation->hostlist : "";
  }
  // The job waits, and goes on waiting while the operator makes its decisions on other objects.
  void expect_waits(const std::string& name, const std::string& reason) {
    ASSERT_NO_FATAL_FAILURE(wait_until(name + " waits for " + reason, [&] {
      return state(name) == "Pending" && job(name).status.reason == reason;
    }));
    EXPECT_FALSE(job(name).status.message.empty());
  }
  // Where the cycle of the node is one of `slots`, in that order; with whichever it begins.
  void wait_cycle(const std::string& on, const std::vector<Slot>& slots) {
    std::vector<Slot> last;
    const auto matches = [&] {
      last = cycle_of(on);
      if (last.size() != slots.size()) return false;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        // All rotations are tried; after the last one the list is as it was read.
        std::rotate(last.begin(), last.begin() + 1, last.end());
        if (last == slots) return true;
      }
      return false;
    };
    EXPECT_TRUE(devcluster::eventually(matches, seconds{20}))
        << on << " has " << testing::PrintToString(last);
  }
  // Returns the CPUs to which the node's agent must bind the job's pod.
  std::string cpuset_of(const std::string& name, const std::string& on) {
    const json pod = pod_on(name, on);
    if (pod.is_null()) return "?";
    return pod["metadata"].value("annotations", json::object()).value("kubegang.io/cpuset", "");
  }
  json partition(const std::string& name, const json& spec) const {
    return {{"apiVersion", "kubegang.io/v1alpha1"},
            {"kind", "Partition"},
            {"metadata", {{"name", name}}},
            {"spec", spec}};
  }
};

// The example of slurm-semantics.md 14.4: six jobs of two cores on each of five nodes with two
// sockets of four cores. Four jobs have cores of their own, one core of each socket (0,4 to 3,7);
// the fifth and the sixth take turns with the first and the second.
TEST_F(PolicyScenario, CoresAreSharedByThoseWhoHaveTheSameOnly) {
  if (!begin({.example = "cores.yaml", .sockets = 2})) return;
  // In the order of the file.
  const Names names = submit_example();
  ASSERT_EQ(names.size(), 6U);
  ASSERT_NO_FATAL_FAILURE(wait_all_ready(names));
  Names cores;
  for (const std::string& name : names) cores.push_back(cores_of(name));
  EXPECT_THAT(cores, ElementsAre("0,4", "1,5", "2,6", "3,7", "0,4", "1,5"));
  for (std::size_t i = 0; i < names.size(); ++i) {
    // The agent binds each pod to its cores, or jobs side by side would be on each other's.
    EXPECT_EQ(cpuset_of(names[i], "n16"), cores[i]) << names[i];
  }
  // Each of four has one slot of two, and never together with the one that has its cores; which of
  // the first two runs with which of the last two depends on which was ready first.
  const auto one_each = [](const std::vector<Slot>& cycle, const char* a, const char* b) {
    return cycle[0].contains(a) == cycle[1].contains(b) &&
           cycle[0].contains(b) == cycle[1].contains(a) &&
           cycle[0].contains(a) != cycle[0].contains(b);
  };
  for (const char* on : {"n12", "n16"}) {
    std::vector<Slot> cycle;
    EXPECT_TRUE(devcluster::eventually(
        [&] {
          cycle = cycle_of(on);
          return cycle.size() == 2 && cycle[0].size() == 4 && cycle[1].size() == 4 &&
                 one_each(cycle, "one", "five") && one_each(cycle, "two", "six");
        },
        seconds{20}))
        << on << " has " << testing::PrintToString(cycle);
    ASSERT_NO_FATAL_FAILURE(
        expect_frozen_in_turn(on, {"one", "two", "five", "six"}, {"three", "four"}));
  }

  // 14.11 d: memory is allocated, too. A node has 16 GiB less a reserve, and a suspended job keeps
  // its memory.
  const json big =
      R"({"spec": {"resources": {"memoryPerNode": "9Gi"}, "placement": {"hostlist": "n12"}}})"_json;
  ASSERT_NO_FATAL_FAILURE(
      submit_ready({.name = "big", .nodes_count = 1, .command = kForever, .patch = big}));
  submit({.name = "bigger", .nodes_count = 1, .command = kForever, .patch = big});
  ASSERT_NO_FATAL_FAILURE(expect_waits("bigger", "Resources"));
  // A job that stands still gives away its CPUs and not its memory: nothing can take memory from
  // it.
  patch(job_path("big"), {{"spec", {{"control", {{"suspend", true}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_state("big", "Suspended"));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("big is frozen", [&] { return is_frozen(pod_cgroup_of("big", "n12")); }));
  EXPECT_EQ(job("big").status.allocation->shares[0].memory, kube::Bytes{9LL << 30U});
  EXPECT_EQ(state("bigger"), "Pending");
  cancel("big");
  ASSERT_NO_FATAL_FAILURE(wait_ready("bigger"));
}

// The example of slurm-semantics.md 14.5: the same jobs without affinity. A node has eight CPUs,
// whichever, so four jobs of two run at a time, and six jobs in four places have two of three slots
// each.
TEST_F(PolicyScenario, CpusAreCountedWithoutAffinity) {
  if (!begin({.example = "cores.yaml",
              .config = R"({"select": {"type": "ConsTres", "unit": "CPU", "memory": true,
                                       "taskAffinity": false}})",
              .sockets = 2})) {
    return;
  }
  const Names names = submit_example();
  ASSERT_NO_FATAL_FAILURE(wait_all_ready(names));
  for (const std::string& name : names) EXPECT_EQ(cpuset_of(name, "n12"), "") << name;
  // The order in which jobs became ready decides which run together; it is the same on all nodes.
  std::vector<Slot> cycle;
  const auto each_has_two_of_three = [&] {
    cycle = cycle_of("n12");
    return cycle.size() == 3 && cycle == cycle_of("n16") &&
           std::all_of(cycle.begin(), cycle.end(),
                       [](const Slot& slot) { return slot.size() == 4; }) &&
           std::all_of(names.begin(), names.end(), [&](const std::string& name) {
             return std::count_if(cycle.begin(), cycle.end(),
                                  [&](const Slot& slot) { return slot.contains(name); }) == 2;
           });
  };
  EXPECT_TRUE(devcluster::eventually(each_has_two_of_three, seconds{20}))
      << testing::PrintToString(cycle);
  ASSERT_NO_FATAL_FAILURE(expect_frozen_in_turn("n14", names, {}));
}

// The example of slurm-semantics.md 14.6: five jobs of the lower tier have a node each, a job of
// the higher tier needs three. The slice is too long to wait for, so the victims are resumed by the
// end of the preemptor and not by a turn.
TEST_F(PolicyScenario, AHigherTierSuspendsWhatItNeedsAndNoMore) {
  if (!begin({.slice = seconds{600}, .example = "tiers.yaml"})) return;
  const Names low = {"j485", "j486", "j487", "j488", "j489"};
  for (int i = 0; i < 5; ++i) {
    submit({.name = low[static_cast<std::size_t>(i)],
            .nodes_count = 1,
            .command = kForever,
            .partition = "active",
            .patch = on_nodes(node(i))});
  }
  ASSERT_NO_FATAL_FAILURE(wait_all_ready(low));
  // The preemptor ends when the test says so.
  const std::string stop = directory_ + "/stop";
  submit({.name = "j490",
          .nodes_count = 3,
          .command = {"sh", "-c", "until [ -e " + stop + " ]; do sleep 0.05; done"},
          .partition = "hipri"});
  ASSERT_NO_FATAL_FAILURE(wait_ready("j490"));
  EXPECT_EQ(nodes_of("j490"), "n[12-14]");
  for (int i = 0; i < 5; ++i) {
    const std::string& name = low[static_cast<std::size_t>(i)];
    // Suspended jobs keep their nodes.
    EXPECT_EQ(nodes_of(name), node(i));
    const std::string cgroup = pod_cgroup_of(name, node(i));
    if (i < 3) {
      ASSERT_NO_FATAL_FAILURE(wait_state(name, "Suspended"));
      EXPECT_EQ(job(name).status.reason, "Preempted");
      ASSERT_NO_FATAL_FAILURE(wait_until(name + " is frozen", [&] { return is_frozen(cgroup); }));
    } else {
      EXPECT_EQ(state(name), "Running");
      EXPECT_FALSE(is_frozen(cgroup));
    }
  }
  std::ofstream{stop} << "now\n";
  ASSERT_NO_FATAL_FAILURE(wait_state("j490", "Completed"));
  for (int i = 0; i < 3; ++i) {
    const std::string& name = low[static_cast<std::size_t>(i)];
    ASSERT_NO_FATAL_FAILURE(wait_state(name, "Running"));
    const std::string cgroup = pod_cgroup_of(name, node(i));
    ASSERT_NO_FATAL_FAILURE(wait_until(name + " is thawed", [&] { return !is_frozen(cgroup); }));
    EXPECT_GT(job(name).status.suspend_time->elapsed, Duration{});
    // Resumed and not started again.
    EXPECT_EQ(job(name).status.starts.value_or(0), 1);
  }
}

// The example of slurm-semantics.md 14.7, on one node: j94 (low) is requeued for j95 (med), which
// is suspended for j96 (hi). When j96 and j95 are gone, j94 starts as a new incarnation.
TEST_F(PolicyScenario, ThreePartitionsArePreemptedInThreeWays) {
  if (!begin({.nodes_count = 1,
              .slice = seconds{600},
              .example = "three-modes.yaml",
              .config = R"({"requeue": {"delay": "3s"}})"})) {
    return;
  }
  ASSERT_NO_FATAL_FAILURE(
      submit_ready({.name = "j94", .nodes_count = 1, .command = kForever, .partition = "low"}));
  // To tell the second incarnation from the first.
  const std::string first_pod = pods("j94").at(0)["metadata"]["name"];
  ASSERT_NO_FATAL_FAILURE(
      submit_ready({.name = "j95", .nodes_count = 1, .command = kForever, .partition = "med"}));
  EXPECT_EQ(state("j94"), "Pending");
  EXPECT_EQ(job("j94").status.restarts.value_or(0), 1);
  ASSERT_NO_FATAL_FAILURE(
      submit_ready({.name = "j96", .nodes_count = 1, .command = kForever, .partition = "hi"}));
  ASSERT_NO_FATAL_FAILURE(wait_state("j95", "Suspended"));
  EXPECT_EQ(job("j95").status.reason, "Preempted");
  const std::string suspended = pod_cgroup_of("j95", "n12");
  ASSERT_NO_FATAL_FAILURE(wait_until("j95 is frozen", [&] { return is_frozen(suspended); }));
  ASSERT_NO_FATAL_FAILURE(expect_waits("j94", "Resources"));  // its delay is over
  cancel("j96");
  ASSERT_NO_FATAL_FAILURE(wait_state("j95", "Running"));
  EXPECT_EQ(state("j94"), "Pending");
  cancel("j95");
  ASSERT_NO_FATAL_FAILURE(wait_ready("j94"));
  // A new incarnation: its pods have other names and know that they are not the first.
  EXPECT_EQ(job("j94").status.starts.value_or(0), 2);
  Names alive, restart_counts;
  for (const json& pod : pods("j94")) {
    if (pod["status"].value("phase", "") != "Running") continue;
    alive.push_back(pod["metadata"]["name"]);
    for (const json& variable : pod["spec"]["containers"][0]["env"]) {
      if (variable["name"] == "SLURM_RESTART_COUNT") restart_counts.push_back(variable["value"]);
    }
  }
  ASSERT_EQ(alive.size(), 1U);
  EXPECT_NE(alive[0], first_pod);
  EXPECT_THAT(restart_counts, ElementsAre("1"));
}

// The example of slurm-semantics.md 14.8: the cores of one job, an extra row for the QOS that may
// preempt it. b waits, since low may not share; d waits, since there is one extra row.
TEST_F(PolicyScenario, AQosTakesTurnsWithTheJobThatItPreempts) {
  if (!begin({.nodes_count = 1, .example = "qos.yaml", .cpus = 4})) return;
  const json low = R"({"spec": {"resources": {"tasks": 4}, "schedule": {"qos": "low"}}})"_json;
  const json high = R"({"spec": {"resources": {"tasks": 4}, "schedule": {"qos": "high"}}})"_json;
  ASSERT_NO_FATAL_FAILURE(submit_ready(
      {.name = "a", .nodes_count = 1, .command = kForever, .partition = "normal", .patch = low}));
  submit({.name = "b", .nodes_count = 1, .command = kForever, .partition = "normal", .patch = low});
  ASSERT_NO_FATAL_FAILURE(expect_waits("b", "Resources"));
  ASSERT_NO_FATAL_FAILURE(submit_ready(
      {.name = "c", .nodes_count = 1, .command = kForever, .partition = "normal", .patch = high}));
  submit(
      {.name = "d", .nodes_count = 1, .command = kForever, .partition = "normal", .patch = high});
  // Exactly two slots: a and c take turns, though both are in one partition that does not share.
  wait_cycle("n12", {{"a"}, {"c"}});
  ASSERT_NO_FATAL_FAILURE(expect_frozen_in_turn("n12", {"a", "c"}, {}));
  EXPECT_EQ(state("d"), "Pending");
  EXPECT_EQ(state("b"), "Pending");
}

// The example of slurm-semantics.md 14.9: Slurm suspends three jobs where one is enough;
// MinimizePreemption does not. Five nodes, three of them taken: a job of three nodes needs one
// victim at least. The policy is changed while jobs run.
TEST_F(PolicyScenario, MinimizePreemptionSparesWhomItCan) {
  if (!begin({.slice = seconds{600},
              .example = "tiers.yaml",
              .config = R"({"select": {"type": "ConsTres", "memory": false}})",
              .cpus = 2})) {
    return;
  }
  const Names low = {"j17", "j18", "j19"};
  for (int i = 0; i < 3; ++i) {
    submit({.name = low[static_cast<std::size_t>(i)],
            .nodes_count = 1,
            .command = kForever,
            .partition = "active",
            .patch = on_nodes(node(i), {{"resources", {{"tasks", 2}}}})});
  }
  ASSERT_NO_FATAL_FAILURE(wait_all_ready(low));
  const JobOptions preemptor{.name = "j20",
                             .nodes_count = 3,
                             .command = kForever,
                             .partition = "hipri",
                             .patch = R"({"spec": {"resources": {"tasks": 6}}})"_json};
  submit(preemptor);
  ASSERT_NO_FATAL_FAILURE(wait_ready("j20"));
  // Slurm takes the first nodes by name, whatever runs on them.
  EXPECT_EQ(nodes_of("j20"), "n[12-14]");
  for (const std::string& name : low) ASSERT_NO_FATAL_FAILURE(wait_state(name, "Suspended"));
  cancel("j20");
  for (const std::string& name : low) ASSERT_NO_FATAL_FAILURE(wait_state(name, "Running"));

  patch("/apis/kubegang.io/v1alpha1/schedulerconfigs/default",
        {{"spec", {{"placementPolicy", "MinimizePreemption"}}}});
  ASSERT_NO_FATAL_FAILURE(wait_until("the policy is in force", [&] {
    return get("/apis/kubegang.io/v1alpha1/schedulerconfigs/default")["status"]["accepted"].value(
               "placementPolicy", "") == "MinimizePreemption";
  }));
  JobOptions again = preemptor;
  again.name = "j21";
  submit(again);
  ASSERT_NO_FATAL_FAILURE(wait_ready("j21"));
  // The two free nodes and a single victim.
  EXPECT_EQ(nodes_of("j21"), "n[12,15-16]");
  ASSERT_NO_FATAL_FAILURE(wait_state("j17", "Suspended"));
  EXPECT_EQ(state("j18"), "Running");
  EXPECT_EQ(state("j19"), "Running");
}

// Three things that need no node of each other, on one cluster and at the same time, because each
// takes seconds: grace time (n12, n13), exempt time (n14), time limit of jobs in turns (n15).
TEST_F(PolicyScenario, GraceExemptionAndTimeLimit) {
  if (!begin({.nodes_count = 4, .with_partition = false})) return;
  apply_policies_of_ending();
  ASSERT_NO_FATAL_FAILURE(wait_agents());

  // Each runs for three seconds, and most of the time both are there.
  const Instant submitted = now();
  for (const char* name : {"one", "other"}) {
    submit({.name = name,
            .nodes_count = 1,
            .command = kForever,
            .partition = "shared",
            .patch = R"({"spec": {"schedule": {"timeLimit": "3s"}}})"_json});
  }
  const std::string term = directory_ + "/term-";
  const auto traps = [&](const std::string& name, const std::string& then) {
    return Names{
        "sh", "-c",
        "trap 'date +%s >> " + term + name + "; " + then + "' TERM; while :; do sleep 0.05; done"};
  };
  submit({.name = "stubborn",
          .nodes_count = 1,
          .command = traps("stubborn", ":"),
          .partition = "low",
          .patch = on_nodes("n12")});
  submit({.name = "obedient",
          .nodes_count = 1,
          .command = traps("obedient", "exit 0"),
          .partition = "low",
          .patch = on_nodes("n13")});
  submit({.name = "exempt",
          .nodes_count = 1,
          .command = kForever,
          .partition = "low",
          .patch = on_nodes("n14", {{"schedule", {{"qos", "shielded"}}}})});
  ASSERT_NO_FATAL_FAILURE(wait_all_ready({"stubborn", "obedient", "exempt"}));
  submit({.name = "over-exempt",
          .nodes_count = 1,
          .command = kForever,
          .partition = "high",
          .patch = on_nodes("n14")});
  submit({.name = "over-two",
          .nodes_count = 2,
          .command = kForever,
          .partition = "high",
          .patch = on_nodes("n[12-13]")});
  // SIGTERM comes at the beginning of the grace time, whatever the job does with it.
  ASSERT_NO_FATAL_FAILURE(wait_until("both were told to end", [&] {
    return std::ifstream{term + "stubborn"}.good() && std::ifstream{term + "obedient"}.good();
  }));
  EXPECT_NE(state("over-two"), "Running");
  // A job that ends in its grace time does not use up the rest of it.
  ASSERT_NO_FATAL_FAILURE(wait_state("obedient", "Preempted"));
  // The ending is stored before the grace time begins, with the job that it is for.
  const kube::Job in_grace = job("stubborn");
  ASSERT_TRUE(in_grace.status.ending.has_value()) << get(job_path("stubborn")).dump(1);
  EXPECT_EQ(in_grace.status.ending->by->name, "over-two");
  ASSERT_NO_FATAL_FAILURE(wait_state("stubborn", "Preempted"));
  const kube::JobStatus ended = job("stubborn").status;
  EXPECT_GE(*ended.end_time - *in_grace.status.ending->since, seconds{2});
  ASSERT_NO_FATAL_FAILURE(wait_ready("over-two"));

  // Not preempted before its exempt time is over (R7.43).
  ASSERT_NO_FATAL_FAILURE(wait_state("exempt", "Preempted"));
  const kube::JobStatus exempt = job("exempt").status;
  EXPECT_GE(*exempt.end_time - *exempt.start_time, seconds{4});
  ASSERT_NO_FATAL_FAILURE(wait_ready("over-exempt"));

  for (const char* name : {"one", "other"}) expect_timeout_after_three_seconds(name, submitted);
}

}  // namespace
}  // namespace scenarios
