#include "translation/node_translation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace control {
namespace {

using nlohmann::json;

// Returns a ready node of 8 CPUs and 1000 MiB, with two labels; `more` is merged into it.
kube::Node ready_node(const json& more = json::object()) {
  json node{{"metadata", {{"name", "n12"}, {"labels", {{"gpu", "true"}, {"disk", "ssd"}}}}},
            {"status",
             {{"allocatable", {{"cpu", "8"}, {"memory", "1000Mi"}, {"ephemeral-storage", "2Gi"}}},
              {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  node.merge_patch(more);
  return kube::decode<kube::Node>(node).value();
}
// Returns the word of an agent that obeys its timetable.
kube::NodeTimetableStatus ready_agent() {
  kube::NodeTimetableStatus status;
  status.conditions = {{.type = "Ready", .status = kube::ConditionStatus::kTrue}};
  return status;
}

// kubelet counts memory as well: a job that was placed by more than foreign pods and the reserve
// leave would be refused there at its start. Labels become features, with and without their value.
TEST(NodeTranslation, MemoryIsWhatForeignPodsAndTheReserveLeave) {
  const kube::Node node = ready_node();
  const auto agent = ready_agent();
  const NodeVerdict verdict =
      translate_node({.node = &node, .agent = &agent, .foreign_memory = kube::Bytes{100LL << 20U}});
  EXPECT_EQ(verdict.spec.memory, sched::MemoryMiB{850});  // 1000 - 100 - 5 %
  EXPECT_EQ(verdict.spec.tmp_disk, sched::MemoryMiB{2048});
  EXPECT_EQ(verdict.spec.cpus, 8);
  EXPECT_EQ(verdict.spec.state, sched::NodeState::kUp);
  EXPECT_EQ(verdict.spec.features, (std::vector<std::string>{"disk", "disk=ssd", "gpu"}));
}

// An amount of the pod as a whole stands in for those of its containers, as kubelet counts.
TEST(NodeTranslation, AForeignPodTakesWhatItAsksForAsAWhole) {
  const auto pod = kube::decode<kube::Pod>(
      {{"metadata", {{"name", "p"}}},
       {"spec",
        {{"resources", {{"requests", {{"memory", "3Gi"}}}}},
         {"containers",
          json::array({{{"name", "a"}, {"resources", {{"requests", {{"memory", "1Gi"}}}}}}})}}}});
  EXPECT_EQ(memory_request(pod.value()), kube::Bytes{3LL << 30});
}

// kubelet refuses a pod above its limit after the gang has been started. More foreign pods than the
// limit leave none, and not a negative number.
TEST(NodeTranslation, PodsAreWhatForeignPodsLeaveOfKubeletsLimit) {
  const auto agent = ready_agent();
  const kube::Node limited = ready_node({{"status", {{"allocatable", {{"pods", "110"}}}}}});
  EXPECT_EQ(
      translate_node({.node = &limited, .agent = &agent, .foreign_pods = 8}).spec.pods_max.value(),
      102);
  EXPECT_EQ(translate_node({.node = &limited, .agent = &agent, .foreign_pods = 200})
                .spec.pods_max.value(),
            0);
}

// A pod that no timetable has room for would never be frozen.
TEST(NodeTranslation, PodsAreNoMoreThanATimetableLists) {
  const auto agent = ready_agent();
  const kube::Node roomy = ready_node({{"status", {{"allocatable", {{"pods", "5000"}}}}}});
  EXPECT_EQ(translate_node({.node = &roomy, .agent = &agent}).spec.pods_max.value(), 1024);
  const kube::Node unlimited = ready_node();
  EXPECT_EQ(translate_node({.node = &unlimited, .agent = &agent, .foreign_pods = 8})
                .spec.pods_max.value(),
            1024);
}

// Until its agent says more: the machine's CPUs, also those that kubelet keeps back.
TEST(NodeTranslation, CountsTheCpusOfTheMachine) {
  const kube::Node node = ready_node({{"status", {{"capacity", {{"cpu", "10"}}}}}});
  EXPECT_EQ(translate_node({.node = &node}).spec.cpus, 10);
}

// 2 sockets with 4 cores of 2 threads: 8 cores, 16 CPUs.
TEST(NodeTranslation, TopologyAndWeightComeFromAgentAndLabel) {
  const kube::Node node = ready_node({{"metadata", {{"labels", {{"kubegang.io/weight", "5"}}}}}});
  auto agent = ready_agent();
  agent.topology = kube::NodeTopology{2, 4, 2, "0-15"};
  const NodeVerdict verdict = translate_node({.node = &node, .agent = &agent});
  EXPECT_EQ(verdict.spec.cores(), 8);
  EXPECT_EQ(verdict.spec.cpus, 16);
  EXPECT_EQ(verdict.spec.weight, 5U);
}

// kubelet's word is the newer one when an agent has died. Its own last word would say "ready"
// forever. Without knowledge of its pod the word alone counts.
TEST(NodeTranslation, TakesNothingNewWithoutAReadyAgentByItsPodOrItsWord) {
  const auto agent = ready_agent();
  auto stopped = ready_agent();
  stopped.conditions[0].status = kube::ConditionStatus::kFalse;
  stopped.conditions[0].reason = "Stopped";
  const kube::Node node = ready_node();
  const auto problem = [&](const kube::NodeTimetableStatus& said, std::optional<AgentPod> pod) {
    const auto found = translate_node({.node = &node, .agent = &said, .agent_pod = pod}).problem;
    return found ? found->reason + ": " + found->message : "";
  };
  EXPECT_EQ(problem(agent, std::nullopt), "");
  EXPECT_EQ(problem(agent, AgentPod::kReady), "");
  EXPECT_EQ(problem(agent, AgentPod::kMissing), "NoAgent: has no pod of the agent");
  EXPECT_EQ(problem(agent, AgentPod::kNotRunning),
            "AgentNotReady: has an agent whose container does not run");
  EXPECT_EQ(problem(agent, AgentPod::kNotReady),
            "AgentNotReady: has an agent whose pod is not ready");
  EXPECT_EQ(problem(stopped, AgentPod::kReady), "AgentNotReady: has an agent that says Stopped");
  EXPECT_EQ(problem(stopped, std::nullopt), "AgentNotReady: has an agent that says Stopped");
}

// Drained: jobs that run there go on. Only a node that is not ready is down. Where no agent is
// needed neither its absence nor its clock matters.
TEST(NodeTranslation, TakesNothingNewWithoutAgentCordonedOrTainted) {
  const auto agent = ready_agent();
  const kube::Node plain = ready_node();
  const kube::Node cordoned = ready_node({{"spec", {{"unschedulable", true}}}});
  const kube::Node tainted =
      ready_node({{"spec",
                   {{"taints", json::array({{{"key", "node.kubernetes.io/memory-pressure"},
                                             {"effect", "NoSchedule"}}})}}}});
  const kube::Node down = ready_node(
      {{"status", {{"conditions", json::array({{{"type", "Ready"}, {"status", "Unknown"}}})}}}});
  using sched::NodeState;
  EXPECT_EQ(translate_node({.node = &plain}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &plain, .needs_agent = false}).spec.state, NodeState::kUp);
  EXPECT_EQ(translate_node({.node = &cordoned, .agent = &agent}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &tainted, .agent = &agent}).spec.state, NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &down, .agent = &agent}).spec.state, NodeState::kDown);
  EXPECT_EQ(translate_node({.node = &plain, .agent = &agent, .has_orphans = true}).spec.state,
            NodeState::kDrain);
  EXPECT_EQ(translate_node({.node = &plain, .agent = &agent, .clock = kube::ClockPolicy::kRequire})
                .spec.state,
            NodeState::kDrain);
  // The agent of a node that needs one has to say that the clock is kept.
  for (const bool is_kept : {true, false}) {
    auto says = ready_agent();
    says.conditions.push_back(
        {.type = "ClockSynchronized",
         .status = is_kept ? kube::ConditionStatus::kTrue : kube::ConditionStatus::kFalse});
    const NodeVerdict verdict =
        translate_node({.node = &plain, .agent = &says, .clock = kube::ClockPolicy::kRequire});
    EXPECT_EQ(verdict.spec.state, is_kept ? NodeState::kUp : NodeState::kDrain);
    EXPECT_EQ(translate_node({.node = &plain, .agent = &says}).spec.state, NodeState::kUp);
  }
  EXPECT_EQ(
      translate_node({.node = &plain, .needs_agent = false, .clock = kube::ClockPolicy::kRequire})
          .spec.state,
      NodeState::kUp);
}

}  // namespace
}  // namespace control
