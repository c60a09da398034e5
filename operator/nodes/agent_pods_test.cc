#include "operator/nodes/agent_pods.h"

#include <gtest/gtest.h>

#include "api/wellknown.h"

namespace control {
namespace {

const kube::ObjectKey kFirst{"system", "agent-1"};
const kube::ObjectKey kSecond{"system", "agent-2"};

// Returns an agent's pod on n1; `runs`: its container runs; `ready`: kubelet calls it ready.
kube::Pod agent(bool runs, bool ready) {
  kube::Pod pod;
  pod.metadata.labels = {{"app.kubernetes.io/name", "kubegang"},
                         {"app.kubernetes.io/component", "agent"}};
  pod.spec.node_name = "n1";
  pod.status.phase = kube::PodPhase::kRunning;
  kube::ContainerStatus container{.name = "agent"};
  if (runs) container.state.running = kube::ContainerRunning{};
  pod.status.container_statuses.push_back(container);
  pod.status.conditions = {
      {.type = "Ready",
       .status = ready ? kube::ConditionStatus::kTrue : kube::ConditionStatus::kFalse}};
  return pod;
}

struct AgentPodsTest : testing::Test {
  AgentPodsTest() { agents.expect_in("system"); }
  // Shows the pod; returns what is then known about the agent on n1.
  AgentPod after(const kube::Pod& pod) {
    EXPECT_EQ(agents.observe(kFirst, &pod), "n1");
    return agents.on("n1").value();
  }
  AgentPods agents;
};

// kubelet's word, which comes also when the agent can no longer say anything, for example after a
// crash. The readiness may lag behind the container, so the container counts first.
TEST_F(AgentPodsTest, SayWhetherTheAgentRunsAndIsReady) {
  EXPECT_EQ(agents.on("n1"), AgentPod::kMissing);
  EXPECT_EQ(after(agent(false, false)), AgentPod::kNotRunning);
  EXPECT_EQ(after(agent(true, false)), AgentPod::kNotReady);
  EXPECT_EQ(after(agent(true, true)), AgentPod::kReady);
  // Between two tries of kubelet to start it.
  EXPECT_EQ(after(agent(false, true)), AgentPod::kNotRunning);
  EXPECT_EQ(agents.observe(kFirst, nullptr), "n1");
  EXPECT_EQ(agents.on("n1"), AgentPod::kMissing);
}

// A DaemonSet's update: the old pod ends while the new one starts. With the worst, each update
// would drain all nodes in turn.
TEST_F(AgentPodsTest, TheBestOfSeveralCounts) {
  kube::Pod old = agent(true, true);
  EXPECT_EQ(after(old), AgentPod::kReady);
  old.metadata.deletion_timestamp = base::Instant{};
  EXPECT_EQ(after(old), AgentPod::kNotReady);
  old.status.phase = kube::PodPhase::kSucceeded;
  EXPECT_EQ(after(old), AgentPod::kMissing);
  const kube::Pod next = agent(true, true);
  EXPECT_EQ(agents.observe(kSecond, &next), "n1");
  EXPECT_EQ(agents.on("n1"), AgentPod::kReady);
  EXPECT_EQ(agents.observe(kFirst, nullptr), std::nullopt);
  EXPECT_EQ(agents.on("n1"), AgentPod::kReady);
}

// Neither by label nor by namespace: a user's pod with our labels must not pass for an agent.
TEST_F(AgentPodsTest, OtherPodsAreNone) {
  kube::Pod other = agent(true, true);
  other.metadata.labels["app.kubernetes.io/name"] = "log-collector";
  EXPECT_EQ(agents.observe(kFirst, &other), std::nullopt);
  const kube::Pod elsewhere = agent(true, true);
  EXPECT_EQ(agents.observe({"team-a", "agent-1"}, &elsewhere), std::nullopt);
  EXPECT_EQ(agents.on("n1"), AgentPod::kMissing);
}

// As in a development cluster, whose agents are processes: only the NodeTimetable shows one.
TEST(AgentPods, NothingIsKnownWhereAgentsAreNoPods) {
  AgentPods agents;
  const kube::Pod pod = agent(true, true);
  EXPECT_EQ(agents.observe(kFirst, &pod), std::nullopt);
  EXPECT_EQ(agents.on("n1"), std::nullopt);
}

}  // namespace
}  // namespace control
