// Nodes whose agent is gone: nothing switches their pods.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/testing/world.h"

namespace control {
namespace {

using std::chrono::seconds;

constexpr const char* kNodes[] = {"n12", "n13", "n14", "n15", "n16"};

// Two full-size jobs that take turns of 4 s, each on all five nodes.
class AgentsTest : public ::testing::Test {
 protected:
  explicit AgentsTest(bool pods) : world_{{.agent_pods = pods}} {
    world_.apply(linear_config("4s"));
    world_.apply(partition("batch", force()));
    world_.apply(gang_job("first", 5, ""));
    world_.run_for(seconds{6});
    world_.apply(gang_job("second", 5, ""));
    world_.run_for(seconds{24});
  }
  // Why nodes of the partition take no new jobs: "AgentNotReady n12: has …".
  std::string unusable() {
    world_.run_for(seconds{61});  // of the budget for what only informs
    const auto partition = world_.client().get<kube::Partition>({"", "batch"});
    EXPECT_TRUE(partition.ok());
    std::string text;
    std::int32_t nodes = 0;
    for (const kube::UnusableNodes& group : partition->status.unusable) {
      text +=
          (text.empty() ? "" : "; ") + group.reason + " " + group.hostlist + ": " + group.message;
      nodes += group.nodes;
    }
    EXPECT_EQ(partition->status.unusable_nodes, nodes);
    return text;
  }
  // Returns the part of about 130 s that the job was suspended, by its status.
  double part_suspended(const std::string& job) {
    const kube::JobStatus before = world_.job(job).status;
    world_.run_for(seconds{130});
    const kube::JobStatus after = world_.job(job).status;
    EXPECT_TRUE(before.suspend_time && after.suspend_time);
    if (!before.suspend_time || !after.suspend_time) return -1;
    const base::Duration elapsed = after.suspend_time->elapsed - before.suspend_time->elapsed;
    const base::Duration all = after.suspend_time->as_of - before.suspend_time->as_of;
    EXPECT_GT(all, seconds{60});
    return static_cast<double>(elapsed.count()) / static_cast<double>(all.count());
  }
  World world_;
};

struct AgentsThatAreNoPods : AgentsTest {
  AgentsThatAreNoPods() : AgentsTest{false} {}
};
struct AgentsThatArePods : AgentsTest {
  AgentsThatArePods() : AgentsTest{true} {}
};

// The third job needs all five nodes, and stacks on the two that take turns there as soon as all
// take jobs.
TEST_F(AgentsThatAreNoPods, AStoppedAgentsNodeTakesNoNewJobs) {
  // With a last word: it has said Stopped.
  world_.node("n12").remove_agent(true);
  world_.apply(gang_job("third", 5, ""));
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("third"), "Pending") << world_.log_tail();
  EXPECT_EQ(unusable(), "AgentNotReady n12: has an agent that says Stopped");
  EXPECT_EQ(world_.state("first"), "Running");  // nothing that runs is ended
  world_.node("n12").return_agent();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("third") != "Pending"; }, seconds{20}))
      << world_.log_tail();
  EXPECT_EQ(unusable(), "");
}

// With turns the second job would be suspended for half of the time; without an agent nothing is
// frozen.
TEST_F(AgentsThatAreNoPods, TimeWithAStoppedAgentCountsAsRunTime) {
  for (const char* node : kNodes) world_.node(node).remove_agent(true);
  world_.run_for(seconds{130});  // what is stored is a minute old
  EXPECT_LT(part_suspended("second"), 0.05) << world_.log_tail();
}

// One that is killed with its supervisor has no last word: kubelet has.
TEST_F(AgentsThatArePods, ANodeWhoseAgentsPodIsGoneTakesNoNewJobs) {
  // Without a last word, as if killed.
  world_.node("n12").remove_agent(false);
  world_.apply(gang_job("third", 5, ""));
  world_.run_for(seconds{30});
  EXPECT_EQ(world_.state("third"), "Pending") << world_.log_tail();
  EXPECT_EQ(unusable(), "NoAgent n12: has no pod of the agent");
  world_.node("n12").return_agent();
  EXPECT_TRUE(world_.run_until([&] { return world_.state("third") != "Pending"; }, seconds{20}))
      << world_.log_tail();
}

// Without agents both jobs run all the time; when the agents are back, each is off for half of it.
TEST_F(AgentsThatArePods, TimeWithoutAnAgentCountsAsRunTime) {
  for (const char* node : kNodes) world_.node(node).remove_agent(false);
  world_.run_for(seconds{130});
  EXPECT_LT(part_suspended("second"), 0.05) << world_.log_tail();
  for (const char* node : kNodes) world_.node(node).return_agent();
  world_.run_for(seconds{130});
  EXPECT_NEAR(part_suspended("second"), 0.5, 0.1) << world_.log_tail();
}

// A new leader has seen all pods before it decides anything: no node seems to be without its agent.
TEST_F(AgentsThatArePods, ANewLeaderUsesTheNodesAtOnce) {
  world_.restart_operator();
  world_.apply(gang_job("third", 5, ""));
  world_.run_for(seconds{2});
  EXPECT_EQ(world_.state("third"), "Running") << world_.log_tail();
  const std::string log = world_.log_tail();
  const std::size_t begin = log.rfind("configuration in force");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_EQ(log.find("node does not slice", begin), std::string::npos) << log;
  EXPECT_EQ(log.find("usable=false", begin), std::string::npos) << log;
}

// With gang scheduling off nothing is ever frozen, so a missing agent keeps no node from work.
TEST(Agents, AreNotNeededWhereJobsTakeNoTurns) {
  World world{{.agent_pods = true}};
  nlohmann::json config = linear_config("4s");
  config["spec"]["gang"] = false;
  world.apply(config);
  world.apply(partition("batch", force()));
  for (const char* node : kNodes) world.node(node).remove_agent(false);
  world.apply(gang_job("only", 5, "20s"));
  EXPECT_TRUE(world.run_until([&] { return world.state("only") == "Completed"; }, seconds{60}))
      << world.log_tail();
}

}  // namespace
}  // namespace control
