// Partitions that drain, taint their nodes, or are deleted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/wellknown.h"
#include "operator/testing/world.h"
#include "translation/config_translation.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// State Drain (slurm-semantics.md, 1.2.1): a job that is queued may start there, a new one may not
// even wait there. The refusal must survive a new leader, which judges the job again; and it ends
// with the drain, without any act of the user.
TEST(Operator, APartitionThatDrainsTakesNoNewJobs) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"state", "Drain"}})));
  world.run_for(seconds{2});
  world.apply(gang_job("new", 2, "5s"));
  world.run_for(seconds{5});
  EXPECT_EQ(world.condition("Job", "new", "Accepted"),
            "False: Invalid: partition batch takes no new jobs: it is draining");
  world.restart_operator();
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("new"), "Pending");
  EXPECT_EQ(world.job("new").status.reason, "NotAccepted");
  world.apply(partition("batch", force("n[12-16]", {{"state", "Up"}})));
  ASSERT_TRUE(world.run_until([&] { return world.state("new") == "Completed"; }, minutes{1}))
      << world.log_tail();
  expect_no_violations(world);
}

// Slurm refuses a partition with unknown nodes; here nodes come and go, so that it only informs.
// When a cluster starts, nodes join by the hundreds within seconds: each would change the sentence,
// and a write for each would be a load without use.
TEST(Operator, APartitionNamesTheNodesThatDoNotExistUntilTheyCome) {
  World world{{.nodes = {"n1"}}};
  const auto accepted = [&] { return world.condition("Partition", "batch", "Accepted"); };
  const auto writes = [&] { return world.process().loop().counters().status_writes; };
  const auto add_node = [&](const char* name) {
    kube::Node node;
    node.metadata.name = name;
    ASSERT_TRUE(world.client().create(node).ok());
    world.run_for(seconds{1});
  };
  world.apply(partition("batch", force("n[1-3]")));
  world.run_for(seconds{1});
  EXPECT_EQ(accepted(),
            "True: InForceWithWarning: spec.nodes.hostlist: there is no node n[2-3] (2 of the 3 "
            "that it names)");
  world.run_for(seconds{90});
  const auto before = writes();
  add_node("n2");
  add_node("n3");
  EXPECT_EQ(writes(), before + 1) << "at most once in 5 s, however many come";
  EXPECT_EQ(accepted(),
            "True: InForceWithWarning: spec.nodes.hostlist: there is no node n3 (1 of the 3 that "
            "it names)");
  world.run_for(seconds{90});
  EXPECT_EQ(writes(), before + 2);
  EXPECT_EQ(accepted(), "True: InForce: the spec is in force");
}

// Kubernetes' controller deletes the pods of a node that is tainted NoExecute while a gang runs
// there. The gang starts again elsewhere: its next start is judged by the nodes as they are then.
TEST(Operator, AGangThatLosesANodeToATaintStartsAgainElsewhere) {
  World world{{.nodes = {"n1", "n2", "n3"}}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[1-3]")));
  world.apply(gang_job("two", 2, ""));
  const auto is_ready = [&] {
    return kube::is_true(world.job("two").status.conditions, kube::kReady);
  };
  ASSERT_TRUE(world.run_until(is_ready, seconds{30})) << world.log_tail();
  ASSERT_EQ(world.job("two").status.allocation->hostlist, "n[1-2]");
  const json taint{{"key", "team"}, {"effect", "NoExecute"}};
  ASSERT_TRUE(world.client()
                  .patch<kube::Node>({"", "n2"}, {{"spec", {{"taints", json::array({taint})}}}})
                  .ok());
  world.run_for(seconds{1});
  for (const kube::Pod& pod : world.pods_of("two")) {
    if (pod.spec.node_name != "n2") continue;
    ASSERT_TRUE(world.client().remove<kube::Pod>(kube::key_of(pod.metadata), {}).ok());
  }
  ASSERT_TRUE(world.run_until([&] { return world.job("two").status.starts == 2; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("two").status.allocation->hostlist, "n[1,3]") << world.log_tail();
  expect_no_violations(world);
}

// Returns the node's taints as kubectl writes them: KEY=VALUE:EFFECT.
std::vector<std::string> taints_of(World& world, const std::string& name) {
  const auto node = world.client().get<kube::Node>({.ns = "", .name = name});
  std::vector<std::string> taints;
  if (!node.ok()) return {node.error().message};
  for (const kube::Taint& taint : node->spec.taints) {
    taints.push_back(taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" +
                     taint.effect);
  }
  return taints;
}

// architecture.md 4: taintNodes keeps other pods off; our own job runs there all the same. The
// taint goes when taintNodes is off and when the partition is deleted: a taint that was left behind
// would keep the node empty, and no object would say why.
TEST(Operator, TaintsTheNodesOfAPartitionThatSaysSo) {
  using Taints = std::vector<std::string>;
  World world{{.nodes = {"n1", "n2", "n3"}}};
  ASSERT_TRUE(
      world.client()
          .patch<kube::Node>(
              {"", "n1"},
              {{"spec",
                {{"taints", {{{"key", "team"}, {"value", "a"}, {"effect", "PreferNoSchedule"}}}}}}})
          .ok());
  world.apply(linear_config());
  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", true}})));
  world.apply(gang_job("one", 2, ""));
  ASSERT_TRUE(world.run_until([&] { return world.state("one") == "Running"; }, seconds{5}))
      << world.log_tail();
  // Another owner's taint stays, before and after.
  EXPECT_EQ(taints_of(world, "n1"),
            (Taints{"team=a:PreferNoSchedule", "kubegang.io/managed:NoSchedule"}));
  EXPECT_EQ(taints_of(world, "n2"), (Taints{"kubegang.io/managed:NoSchedule"}));
  EXPECT_EQ(taints_of(world, "n3"), Taints{});

  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", false}})));
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n1"), (Taints{"team=a:PreferNoSchedule"})) << world.log_tail();
  EXPECT_EQ(taints_of(world, "n2"), Taints{});

  world.apply(partition("batch", force("n[1-2]", {{"taintNodes", true}})));
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n2"), (Taints{"kubegang.io/managed:NoSchedule"}));
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{15});
  EXPECT_EQ(taints_of(world, "n2"), Taints{}) << world.log_tail();
  expect_no_violations(world);
}

// An administrator cordons the node right after its taint was written. The watch shows the cordon
// before the operator looks at the answer to its own write, which has the version before. If the
// older answer replaced what the watch has shown, the node would count as usable, and the job would
// be started on a node that is about to be repaired.
TEST(Operator, AnAnswerThatTheWatchHasOvertakenDoesNotUndoACordon) {
  World world{{.nodes = {"n1"}}};
  world.apply(linear_config());
  world.run_for(seconds{2});
  world.apply(partition("batch", force("n1", {{"taintNodes", true}})));
  OperatorProcess& process = world.process();
  process.pump_without_writes();
  while (process.writer().run_one() == ManualWriter::Turn::kDone) {
  }
  ASSERT_EQ(taints_of(world, "n1"), (std::vector<std::string>{"kubegang.io/managed:NoSchedule"}));
  const json cordon{{"spec", {{"unschedulable", true}}}};
  ASSERT_TRUE(world.client().patch<kube::Node>({"", "n1"}, cordon).ok());
  world.run_for(seconds{2});
  world.apply(gang_job("late", 1, "5s"));
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("late"), "Pending") << world.log_tail();
}

// api.md, Partition: "Deleted with jobs: running ones finish unsliced". Two gangs share all nodes,
// by turns of 4 s. With the partition the timetable goes, so the agents thaw both, and neither is
// lost or stays frozen.
TEST(Operator, RunningJobsOfADeletedPartitionFinishUnsliced) {
  World world{{}};
  world.apply(linear_config("4s"));
  world.apply(partition("batch", force()));
  world.apply(gang_job("first", 5, "60s"));
  world.apply(gang_job("second", 5, "60s"));
  world.run_for(seconds{30});
  ASSERT_FALSE(world.timetable("n12").spec.pods.empty());
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{10});
  EXPECT_TRUE(world.timetable("n12").spec.pods.empty()) << world.log_tail();
  EXPECT_EQ(world.state("first"), "Running");
  EXPECT_EQ(world.state("second"), "Running");
  ASSERT_TRUE(world.run_until([&] { return world.state("second") == "Completed"; }, minutes{2}))
      << world.log_tail();
}

// squeue's PARTITION: all that a waiting job may run in, then the one that it was started in. All
// nodes are busy with "first", so the others wait. In turn: a job that names no partition, one that
// names two, and one whose partition does not exist. The column follows an edit, a start and a
// requeue.
TEST(Operator, AJobSaysInWhichPartitionsItMayRunUntilItIsStartedInOne) {
  const nlohmann::json never{{"overSubscribe", {{"policy", "Never"}}}};
  World world{{}};
  nlohmann::json config = linear_config();
  config["spec"]["requeue"] = {{"delay", "10s"}};
  world.apply(config);
  world.apply(partition("batch", force("n[12-16]", never)));
  world.apply(partition("spare", {{"nodes", {{"hostlist", "n[12-13]"}}}}));
  world.apply(gang_job("first", 5, ""));
  ASSERT_TRUE(world.run_until([&] { return world.state("first") == "Running"; }, seconds{5}))
      << world.log_tail();
  const std::vector<std::pair<std::string, std::string>> want{
      {"none", "batch"}, {"two", "spare,batch"}, {"bad", "nowhere"}};
  world.apply(gang_job("none", 1, ""));
  world.apply(gang_job("two", 1, "", {{"partitions", {"spare", "batch"}}}));
  world.apply(gang_job("bad", 1, "", {{"partitions", {"nowhere"}}}));
  for (const auto& [name, partitions] : want) {
    ASSERT_TRUE(
        world.run_until([&, job = name] { return world.state(job) == "Pending"; }, seconds{5}));
    EXPECT_EQ(world.job(name).status.partition, partitions) << "its first status";
  }
  const auto pending_in = [&](const char* name) {
    return world.client().get<kube::Partition>({"", name})->status.jobs->pending;
  };
  world.run_for(seconds{90});
  // A waiting job counts in the first partition that it names: "two" in spare. "bad" is not in the
  // queue and counts nowhere.
  EXPECT_EQ(pending_in("batch"), 1);
  EXPECT_EQ(pending_in("spare"), 1);

  world.restart_operator();
  world.run_for(seconds{5});
  EXPECT_EQ(world.state("none"), "Pending") << world.log_tail();
  world.patch_job("none", {{"partitions", {"spare"}}});
  world.run_for(seconds{90});
  EXPECT_EQ(world.job("none").status.partition, "spare");
  EXPECT_EQ(pending_in("spare"), 2);

  world.patch_job("first", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("two") == "Running"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("two").status.partition, "spare");
  world.patch_job("two", {{"control", {{"requeueRequest", 1}}}});
  ASSERT_TRUE(world.run_until([&] { return world.state("two") == "Pending"; }, minutes{2}))
      << world.log_tail();
  EXPECT_EQ(world.job("two").status.partition, "spare,batch");
  expect_no_violations(world);
}

// Slurm's word for a job whose partition cannot start it; it waits, the running one goes on. A new
// leader comes to the same result from the stored states alone, and the job goes on when a
// partition of that name is created again.
TEST(Operator, JobsOfADeletedPartitionWait) {
  World world{{}};
  world.apply(linear_config());
  world.apply(partition("batch", force("n[12-16]", {{"overSubscribe", {{"policy", "Never"}}}})));
  world.apply(gang_job("runs", 5, ""));
  world.run_for(seconds{5});
  world.apply(gang_job("waits", 1, ""));
  world.run_for(seconds{5});
  ASSERT_TRUE(world.client().remove<kube::Partition>({"", "batch"}).ok());
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("runs"), "Running") << world.log_tail();
  EXPECT_EQ(world.state("waits"), "Pending") << world.log_tail();
  EXPECT_EQ(world.job("waits").status.reason, "PartitionInactive");
  world.restart_operator();
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("runs"), "Running") << world.log_tail();
  EXPECT_EQ(world.job("runs").status.starts, 1);
  EXPECT_EQ(world.job("waits").status.reason, "PartitionInactive");
  world.patch_job("runs", {{"control", {{"cancel", true}}}});
  world.run_for(seconds{30});
  EXPECT_EQ(world.state("runs"), "Cancelled") << world.log_tail();
  world.apply(partition("batch", force("n[12-16]")));
  world.run_for(seconds{90});
  EXPECT_EQ(world.state("waits"), "Running") << world.log_tail();
  expect_no_violations(world);
}

// A parameter of the operator that says what jobs may use of a node is in force at once, not when
// the node happens to change. The translated nodes are kept; a parameter that changes their meaning
// must throw them away.
TEST(Operator, AnotherNodeReserveIsInForceAtOnce) {
  World world{{}};
  json config = linear_config();
  config["spec"]["select"]["memory"] = true;
  config["spec"]["nodeReserve"] = {{"memoryPercent", 50}};
  world.apply(config);
  world.apply(partition("batch", force()));
  world.run_for(seconds{10});
  config["spec"]["nodeReserve"] = {{"memoryPercent", 5}};
  world.apply(config);
  world.run_for(seconds{1});
  // 12 of 16 GiB: impossible with half of the memory kept back, possible with 5 %.
  world.apply(gang_job("big", 1, "", {{"resources", {{"memoryPerNode", "12Gi"}}}}));
  EXPECT_TRUE(world.run_until([&] { return world.state("big") == "Running"; }, seconds{20}))
      << world.log_tail();
}

// Goal: what the API server fills in is what the operator takes where nothing is written, and what
// depends on other fields is shown in the status: no column of kubectl get is empty. Two places
// hold each default: the CRD and the operator. If they drifted apart, an object from before a
// default existed would mean something else than one from after it.
TEST(Defaults, AreInTheObjectOrInItsStatus) {
  World world{{}};
  world.apply({{"apiVersion", "kubegang.io/v1alpha1"},
               {"kind", "SchedulerConfig"},
               {"metadata", {{"name", "default"}}},
               {"spec", {{"preemptMode", "Requeue"}}}});
  world.apply(partition("batch", force()));
  world.apply(partition("kept", {{"nodes", {{"hostlist", "n12"}}}, {"preemptMode", "Disabled"}}));
  world.run_for(seconds{5});
  const auto config = world.client().get<kube::SchedulerConfig>({"", "default"});
  ASSERT_TRUE(config.ok());
  const kube::SchedulerConfigSpec& spec = config->spec;
  const kube::SchedulerConfigSpec written{.preempt_mode = kube::PreemptMode::kRequeue};
  EXPECT_EQ(translate_config(spec), translate_config(written));
  EXPECT_EQ(operator_parameters(spec), operator_parameters(written));
  EXPECT_EQ(spec.time_slice, seconds{30});
  ASSERT_TRUE(spec.timetable.has_value());
  // The agents' own defaults (KeeperSettings).
  EXPECT_EQ(spec.timetable->barrier, std::chrono::milliseconds{20});
  EXPECT_EQ(spec.timetable->fail_open_after, minutes{15});
  EXPECT_EQ(config->status.preempt_mode, kube::PreemptMode::kRequeue);
  EXPECT_EQ(world.client().get<kube::Partition>({"", "batch"})->status.preempt_mode,
            kube::PreemptMode::kRequeue);
  EXPECT_EQ(world.client().get<kube::Partition>({"", "kept"})->status.preempt_mode,
            kube::PreemptMode::kDisabled);
}

}  // namespace
}  // namespace control
