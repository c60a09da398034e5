// Tests of which nodes have a timetable, and of the agent's duties if jobs take no turns.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "operator/testing/world.h"

namespace control {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;

// Makes a partition of all nodes with that OverSubscribe policy.
json share(const char* policy) {
  return force("n[12-16]", {{"overSubscribe", {{"policy", policy}}}});
}

// Whole nodes for each job, and agents that are pods.
struct NoTurns : testing::Test {
  NoTurns() {
    world.apply(linear_config("4s"));
    world.apply(partition("batch", share("Exclusive")));
    world.run_for(seconds{2});
  }
  // Returns the number of NodeTimetables that are stored; -1 if the list fails.
  int tables() {
    const auto list = world.client().list<kube::NodeTimetable>();
    return list.ok() ? static_cast<int>(list->items.size()) : -1;
  }
  void suspend(const char* job, bool on) { world.patch_job(job, {{"control", {{"suspend", on}}}}); }
  // Returns how long the job's program runs in the next ten seconds.
  base::Duration runs(const char* job) {
    const base::Duration before = world.ran(job);
    world.run_for(seconds{10});
    return world.ran(job) - before;
  }
  bool reaches(const char* job, const std::string& state) {
    return world.run_until([&] { return world.state(job) == state; }, seconds{20});
  }

  World world{{.agent_pods = true}};
};

// With one job on each node nothing ever must be frozen, so no timetable is published, whatever
// starts and ends.
TEST_F(NoTurns, NodesHaveNoTimetable) {
  world.apply(gang_job("one", 2, "10s"));
  world.apply(gang_job("two", 3, ""));
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("one"), "Completed") << world.log_tail();
  EXPECT_EQ(world.state("two"), "Running");
  EXPECT_EQ(tables(), 0);
}

// On all nodes two jobs have cores of their own. A pod brings its CPU set along, so the timetables,
// in which agents tell the nodes' cores, list nothing and are written once.
TEST(Timetables, ListNoPodsOnCoresOfTheirOwn) {
  World world{{}};
  world.apply(partition("batch", {{"nodes", {{"hostlist", "n[12-16]"}}}, {"default", true}}));
  world.run_for(seconds{2});
  const json half{
      {"resources", {{"tasksPerNode", 1}, {"cpusPerTask", 4}, {"memoryPerNode", "1Gi"}}}};
  for (const char* name : {"left", "right"}) world.apply(gang_job(name, 5, "", half));
  world.run_for(seconds{10});
  std::map<std::string, std::set<std::string>> sets;  // by node
  for (const char* name : {"left", "right"}) {
    EXPECT_EQ(world.state(name), "Running") << world.log_tail();
    for (const kube::Pod& pod : world.pods_of(name)) {
      sets[*pod.spec.node_name].insert(pod.metadata.annotations.at("kubegang.io/cpuset"));
    }
  }
  EXPECT_EQ(sets.size(), 5U);
  for (const auto& [node, of_node] : sets) {
    EXPECT_EQ(of_node, (std::set<std::string>{"0-3", "4-7"})) << node;
    EXPECT_TRUE(world.timetable(node).spec.pods.empty());
    EXPECT_EQ(world.timetable(node).spec.revision, 1);
  }
}

// Where no job can have to be stopped for another, an agent that is missing must not keep nodes
// from work.
TEST_F(NoTurns, JobsStartWithoutAgents) {
  for (const char* node : {"n12", "n13", "n14", "n15", "n16"}) world.node(node).remove_agent(false);
  world.apply(gang_job("one", 5, "5s"));
  EXPECT_TRUE(reaches("one", "Completed")) << world.log_tail();
}

// Two nodes, two timetables: each exists only for this suspension, and goes when its agent has
// obeyed the empty one. A user's suspension needs the agents although no jobs take turns: something
// must freeze the pods.
TEST_F(NoTurns, ASuspensionBringsTimetablesAndTakesThemAway) {
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{8});
  suspend("one", true);
  ASSERT_TRUE(reaches("one", "Suspended")) << world.log_tail();
  EXPECT_EQ(tables(), 2);
  world.run_for(seconds{1});
  EXPECT_EQ(runs("one"), seconds{0}) << world.log_tail();
  suspend("one", false);
  ASSERT_TRUE(reaches("one", "Running")) << world.log_tail();
  EXPECT_GT(runs("one"), seconds{9});
  EXPECT_EQ(tables(), 0) << world.log_tail();
  expect_no_violations(world);
}

// The job's CPUs are free for others only once it stands still. "two" waits before the suspension
// and starts because of it.
TEST_F(NoTurns, AnotherJobStartsOnTheNodesOfASuspendedOne) {
  world.apply(gang_job("one", 5, ""));
  world.run_for(seconds{8});
  world.apply(gang_job("two", 5, ""));
  world.run_for(seconds{3});
  EXPECT_EQ(world.state("two"), "Pending");
  suspend("one", true);
  ASSERT_TRUE(reaches("two", "Running")) << world.log_tail();
  EXPECT_EQ(world.state("one"), "Suspended");
  world.run_for(seconds{8});
  EXPECT_GT(runs("two"), seconds{9});
  EXPECT_EQ(runs("one"), seconds{0});
  expect_no_violations(world);
}

// The agent of one node is away. The status must not say Suspended while the job's pods still run.
// A new leader finds the wish in the spec, and no state that would show how far its predecessor had
// come.
TEST_F(NoTurns, ASuspensionThatWaitsForAnAgentSaysSo) {
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{8});
  world.node("n13").remove_agent(false);
  suspend("one", true);
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("one"), "Running");
  EXPECT_EQ(world.job("one").status.message,
            "its suspension waits: node n13 has no pod of the agent");
  EXPECT_GT(runs("one"), seconds{9}) << "as its state says";
  world.restart_operator();
  world.run_for(seconds{2});
  world.node("n13").return_agent();
  ASSERT_TRUE(reaches("one", "Suspended")) << world.log_tail();
  EXPECT_EQ(world.job("one").status.message, "");
  world.run_for(seconds{1});
  EXPECT_EQ(runs("one"), seconds{0});
}

// The job is not ready: its pods are still being started. The first leader has published the
// timetables and is gone before any status says that a suspension was asked for.
TEST_F(NoTurns, ASuspensionOfAJobThatStartsSurvivesANewLeader) {
  world.node("n13").remove_agent(false);
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{1});
  ASSERT_EQ(world.condition("Job", "one", "Ready").substr(0, 5), "False") << world.log_tail();
  suspend("one", true);
  world.run_for(std::chrono::milliseconds{500});
  EXPECT_EQ(tables(), 2);
  world.restart_operator();
  world.run_for(seconds{20});
  EXPECT_EQ(world.state("one"), "Running");
  EXPECT_EQ(world.job("one").status.message,
            "its suspension waits: node n13 has no pod of the agent");
  world.node("n13").return_agent();
  ASSERT_TRUE(reaches("one", "Suspended")) << world.log_tail();
  world.run_for(seconds{1});
  EXPECT_EQ(runs("one"), seconds{0});
  expect_no_violations(world);
}

// The same where the next leader finds all agents ready, but not the job.
TEST_F(NoTurns, ASuspensionIsToldOnceByTwoLeadersBeforeItsJobIsReady) {
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{1});
  suspend("one", true);
  // The first leader has decided it, and is gone before it could write anything.
  world.process().pump_without_writes();
  world.restart_operator();
  ASSERT_TRUE(reaches("one", "Suspended")) << world.log_tail();
  world.run_for(seconds{8});
  EXPECT_EQ(runs("one"), seconds{0});
  suspend("one", false);
  ASSERT_TRUE(reaches("one", "Running")) << world.log_tail();
  EXPECT_GT(runs("one"), seconds{9});
  expect_no_violations(world);
}

// After two minutes the timetables that were made for it must be gone as well, though the agent of
// n13 never came: it has never obeyed any version of its own.
TEST_F(NoTurns, ASuspensionThatIsTakenBackBeforeItBeganLeavesNothing) {
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{8});
  world.node("n13").remove_agent(false);
  suspend("one", true);
  world.run_for(seconds{20});
  EXPECT_EQ(tables(), 2);
  world.restart_operator();
  world.run_for(seconds{2});
  suspend("one", false);
  world.run_for(minutes{2});
  EXPECT_EQ(world.job("one").status.message, "");
  EXPECT_EQ(world.state("one"), "Running");
  EXPECT_EQ(tables(), 0) << world.log_tail();
}

// Whichever write is the last of a leader, the next one goes on.
TEST_F(NoTurns, ASuspensionSurvivesALeaderAtEachOfItsWrites) {
  world.apply(gang_job("one", 5, ""));
  world.run_for(seconds{8});
  for (const WritePoint point : {WritePoint::kTimetable, WritePoint::kStatus}) {
    world.crash_after(point);
    suspend("one", true);
    ASSERT_TRUE(reaches("one", "Suspended")) << to_string(point) << world.log_tail();
    world.run_for(seconds{2});
    EXPECT_EQ(runs("one"), seconds{0}) << to_string(point);
    world.crash_after(point);
    suspend("one", false);
    ASSERT_TRUE(reaches("one", "Running")) << to_string(point) << world.log_tail();
    world.run_for(seconds{2});
    EXPECT_GT(runs("one"), seconds{9}) << to_string(point);
    EXPECT_EQ(tables(), 0) << to_string(point);
  }
  world.crash_after(WritePoint::kTimetableDelete);
  suspend("one", true);
  ASSERT_TRUE(reaches("one", "Suspended"));
  suspend("one", false);
  world.run_for(seconds{10});
  // Two rounds with two crashes each, and the last one.
  EXPECT_EQ(world.crashes(), 5);
  EXPECT_EQ(tables(), 0);
  expect_no_violations(world);
}

// Timetables come with the configuration. The other way round, the last ones go with the last jobs
// that take turns: two that are stacked already cannot be put side by side.
TEST_F(NoTurns, AConfigurationThatMakesTurnsPossibleBringsTimetables) {
  world.apply(partition("batch", share("Force")));
  world.run_for(seconds{2});
  EXPECT_EQ(tables(), 5);
  world.apply(gang_job("one", 2, ""));
  world.run_for(seconds{8});
  world.apply(gang_job("two", 2, "", {{"placement", {{"hostlist", "n[12-13]"}}}}));
  world.run_for(seconds{10});
  EXPECT_EQ(world.timetable("n12").spec.pods.size(), 2U) << world.log_tail();
  world.apply(partition("batch", share("Exclusive")));
  world.run_for(seconds{5});
  EXPECT_EQ(tables(), 2) << "two jobs are stacked there" << world.log_tail();
  world.restart_operator();
  world.run_for(seconds{20});
  EXPECT_EQ(tables(), 2) << world.log_tail();
  EXPECT_GT(runs("one"), seconds{1});
  EXPECT_GT(runs("two"), seconds{1}) << "it still takes turns";
  world.patch_job("two", {{"control", {{"cancel", true}}}});
  ASSERT_TRUE(reaches("two", "Cancelled")) << world.log_tail();
  world.run_for(seconds{5});
  EXPECT_EQ(tables(), 0) << world.log_tail();
  EXPECT_GT(runs("one"), seconds{9});
  expect_no_violations(world);
}

// A timetable that an agent has not acknowledged may still hold a pod: it stays. Deleted too early,
// the agent that comes back would find no word about the pod that it keeps frozen.
TEST_F(NoTurns, ATimetableStaysWhileItsAgentObeysAnEarlierOne) {
  world.apply(gang_job("one", 1, ""));
  world.run_for(seconds{8});
  suspend("one", true);
  ASSERT_TRUE(reaches("one", "Suspended"));
  world.node("n12").remove_agent(false);
  suspend("one", false);
  world.run_for(minutes{1});
  EXPECT_EQ(tables(), 1);
  EXPECT_EQ(world.state("one"), "Running");
  world.node("n12").return_agent();
  world.run_for(seconds{5});
  EXPECT_EQ(tables(), 0) << world.log_tail();
}

}  // namespace
}  // namespace control
