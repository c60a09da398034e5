#include "translation/node_translation.h"

#include <algorithm>
#include <charconv>

#include "api/wellknown.h"
#include "timetable/timetable.h"
#include "translation/units.h"

namespace control {
namespace {

// 64 TiB, more than any node has: a hundred thousand pods of a node sum up without an overflow.
constexpr std::int64_t kSummedMemoryMax = std::int64_t{1} << 46U;

// 0 if the node does not report the resource.
std::int64_t quantity_units(const kube::ResourceList& list, const std::string& name) {
  const auto found = list.find(name);
  // Rounded down: half a CPU is none that could be given away whole.
  return found == list.end() ? 0 : found->second.milli() / 1000;
}

kube::Bytes memory_of(const kube::ResourceList& list) {
  const auto found = list.find("memory");
  return found == list.end() ? kube::Bytes{0} : found->second.bytes();
}

// Returns the space of emptyDirs and writable layers of a job's pods: Slurm's TmpDisk.
sched::MemoryMiB tmp_disk_of(const kube::ResourceList& list) {
  const auto found = list.find("ephemeral-storage");
  return found == list.end() ? sched::MemoryMiB{0} : whole_mib_of(found->second.bytes());
}

// Returns the weight by which the scheduler prefers nodes: lower first (1.3). A label that is not a
// number counts as the default, since a node cannot be refused for it.
std::uint32_t weight_of(const kube::Labels& labels) {
  const auto label = labels.find(std::string{kube::kLabelWeight});
  std::uint32_t weight = 1;
  if (label == labels.end()) return weight;
  const char* end = label->second.data() + label->second.size();
  const auto parsed = std::from_chars(label->second.data(), end, weight);
  return parsed.ec == std::errc{} && parsed.ptr == end ? weight : 1;
}

// A label is a feature by its key, and by key=value where the value says more than "true".
std::vector<std::string> features_of(const kube::Labels& labels) {
  std::vector<std::string> features;
  for (const auto& [key, value] : labels) {
    if (value == "false") continue;
    features.push_back(key);
    if (!value.empty() && value != "true") features.push_back(key + "=" + value);
  }
  return features;
}

// Returns all CPUs of the machine, as its agent would count them: requests of CPUs decide nothing
// here, so what kubelet keeps back of them does not either.
std::int64_t cpus_of(const kube::NodeStatus& status) {
  const std::int64_t all = quantity_units(status.capacity, "cpu");
  return all > 0 ? all : quantity_units(status.allocatable, "cpu");
}

// A core set holds at most kCoresPerNodeMax cores; a larger machine is cut to that.
void set_processors(const NodeFacts& facts, sched::NodeSpec& spec) {
  const auto cpus = static_cast<int>(
      std::clamp<std::int64_t>(cpus_of(facts.node->status), 1, sched::kCoresPerNodeMax));
  spec.sockets = 1;
  // Until an agent has reported the topology, each CPU counts as a core of its own.
  spec.cores_per_socket = cpus;
  spec.threads_per_core = 1;
  spec.cpus = cpus;
  if (facts.agent == nullptr || !facts.agent->topology) return;
  const kube::NodeTopology& topology = *facts.agent->topology;
  // An agent's word is checked like any other object: a topology must not go beyond what a CoreSet
  // can hold.
  if (topology.sockets < 1 || topology.cores_per_socket < 1 || topology.threads_per_core < 1 ||
      topology.sockets > sched::kCoresPerNodeMax ||
      topology.cores_per_socket > sched::kCoresPerNodeMax / topology.sockets) {
    return;
  }
  spec.sockets = topology.sockets;
  spec.cores_per_socket = topology.cores_per_socket;
  spec.threads_per_core = topology.threads_per_core;
  spec.cpus = spec.cores() * spec.threads_per_core;
}

// Returns the memory that kubelet gives to pods, less that of foreign pods and the reserve of the
// configuration; in whole MiB, rounded down.
sched::MemoryMiB memory_for_jobs(const NodeFacts& facts) {
  const std::int64_t allocatable = memory_of(facts.node->status.allocatable).value();
  // Divided first, so that it cannot overflow.
  const std::int64_t reserve = allocatable / 100 * facts.memory_reserve_percent;
  const std::int64_t left = allocatable - facts.foreign_memory.value() - reserve;
  return whole_mib_of(kube::Bytes{std::max<std::int64_t>(left, 0)});
}

// Returns as many as kubelet takes, and never more than a timetable can list: a pod beyond that
// would run in all turns. Without a figure kubelet refuses nothing that can be foreseen.
int pods_for_jobs(const NodeFacts& facts) {
  constexpr auto kListedMax = static_cast<std::int64_t>(timetable::kPodsMax);
  if (!facts.node->status.allocatable.contains("pods")) return static_cast<int>(kListedMax);
  const std::int64_t left =
      quantity_units(facts.node->status.allocatable, "pods") - facts.foreign_pods;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kListedMax));
}

std::optional<NodeProblem> problem(std::string_view reason, std::string message) {
  return NodeProblem{std::string{reason}, std::move(message)};
}

// Why no new job may start there.
std::optional<NodeProblem> why_drained(const NodeFacts& facts) {
  const kube::Node& node = *facts.node;
  if (node.spec.unschedulable) return problem(kube::kNodeCordoned, "is cordoned");
  if (node.metadata.deletion_timestamp) {
    return problem(kube::kNodeBeingDeleted, "is being deleted");
  }
  // Taints of Kubernetes' own say that something is wrong with the node. Those that administrators
  // set are matched with the tolerations of each job instead (unusable_nodes).
  for (const kube::Taint& taint : node.spec.taints) {
    const bool lifecycle = taint.key.starts_with("node.kubernetes.io/");
    if (lifecycle && taint.effect != "PreferNoSchedule") {
      return problem(kube::kNodeTainted, "is tainted " + taint.key);
    }
  }
  // Pods of a job that the operator does not know run there beside any new one: their CPUs and
  // memory are counted for no job.
  if (facts.has_orphans)
    return problem(kube::kNodeHasOrphans, "has pods of a job that is gone or has ended");
  if (!facts.needs_agent) return std::nullopt;
  if (auto found = agent_problem(facts)) return found;
  if (facts.clock == kube::ClockPolicy::kRequire &&
      (facts.agent == nullptr || !kube::is_true(facts.agent->conditions, "ClockSynchronized"))) {
    return problem(kube::kNodeClock, "has a clock that is not synchronized");
  }
  return std::nullopt;
}

}  // namespace

// Counts as kube-scheduler does: init containers run one after the other before the others, so the
// largest of them counts against the sum; sidecars run beside them. An amount of the pod as a whole
// takes the place of both.
kube::Bytes memory_request(const kube::Pod& pod) {
  if (is_finished(pod)) return kube::Bytes{0};
  const auto requested = [](const kube::ResourceRequirements& resources) {
    return (resources.requests.contains("memory") ? memory_of(resources.requests)
                                                  : memory_of(resources.limits))
        .value();
  };
  const auto request = [&](const kube::Container& container) {
    return requested(container.resources);
  };
  // A pod may name any amounts, in any number of containers.
  const auto bounded = [](std::int64_t bytes) {
    return std::clamp<std::int64_t>(bytes, 0, kSummedMemoryMax);
  };
  std::int64_t containers = 0;
  for (const kube::Container& container : pod.spec.containers) {
    containers = bounded(containers + bounded(request(container)));
  }
  std::int64_t init = 0;
  for (const kube::Container& container : pod.spec.init_containers) {
    if (container.restart_policy == "Always") {
      containers = bounded(containers + bounded(request(container)));  // a sidecar stays
    } else {
      init = std::max(init, bounded(request(container)));
    }
  }
  const std::int64_t whole = pod.spec.resources ? bounded(requested(*pod.spec.resources)) : 0;
  return kube::Bytes{bounded((whole > 0 ? whole : std::max(containers, init)) +
                             bounded(memory_of(pod.spec.overhead).value()))};
}

// kubelet's word comes first: it is the newer one when an agent has died.
std::optional<NodeProblem> agent_problem(const NodeFacts& facts) {
  switch (facts.agent_pod.value_or(AgentPod::kReady)) {
    case AgentPod::kMissing:
      return problem(kube::kNodeNoAgent, "has no pod of the agent");
    case AgentPod::kNotRunning:
      return problem(kube::kNodeAgentNotReady, "has an agent whose container does not run");
    case AgentPod::kNotReady:
      return problem(kube::kNodeAgentNotReady, "has an agent whose pod is not ready");
    case AgentPod::kReady:
      break;
  }
  if (facts.agent == nullptr) return problem(kube::kNodeNoAgent, "has no agent yet");
  const kube::Condition* ready = kube::find_condition(facts.agent->conditions, kube::kReady);
  if (ready == nullptr) return problem(kube::kNodeNoAgent, "has no agent yet");
  if (ready->status == kube::ConditionStatus::kTrue) return std::nullopt;
  return problem(kube::kNodeAgentNotReady, "has an agent that says " + ready->reason);
}

// Everything about the node except its state is worked out first: the scheduler keeps a node that
// is down, with its size, so that jobs can wait for it.
NodeVerdict translate_node(const NodeFacts& facts) {
  NodeVerdict verdict;
  sched::NodeSpec& spec = verdict.spec;
  spec.name = facts.node->metadata.name;
  set_processors(facts, spec);
  spec.memory = memory_for_jobs(facts);
  spec.pods_max = pods_for_jobs(facts);
  spec.tmp_disk = tmp_disk_of(facts.node->status.allocatable);
  spec.devices = devices_of(*facts.node, facts.foreign_devices, facts.devices);
  spec.weight = weight_of(facts.node->metadata.labels);
  spec.features = features_of(facts.node->metadata.labels);
  // Down is stronger than drained, so the other causes are not looked for.
  if (!is_ready(*facts.node)) {
    spec.state = sched::NodeState::kDown;
    verdict.problem = problem(kube::kNodeNotReady, "is not ready");
    return verdict;
  }
  verdict.problem = why_drained(facts);
  spec.state = verdict.problem ? sched::NodeState::kDrain : sched::NodeState::kUp;
  return verdict;
}

// Returns true if the pods of the node run all at the same time although their jobs should take
// turns: the agent does not run, or it has thawed everything for a reason of its own.
bool is_unsliced(const kube::NodeTimetable* table, std::optional<AgentPod> agent_pod) {
  const kube::Condition* ready =
      table == nullptr ? nullptr : kube::find_condition(table->status.conditions, kube::kReady);
  if (ready == nullptr) return false;
  if (agent_pod && *agent_pod <= AgentPod::kNotRunning) return true;
  return ready->status == kube::ConditionStatus::kFalse &&
         (ready->reason == kube::kAgentKillSwitch || ready->reason == kube::kAgentFailedOpen ||
          ready->reason == kube::kAgentStopped);
}

bool is_ready(const kube::Node& node) {
  return kube::is_true(node.status.conditions, "Ready");
}

bool is_out_of_service(const kube::Node& node) {
  return std::any_of(
      node.spec.taints.begin(), node.spec.taints.end(),
      [](const kube::Taint& taint) { return taint.key == kube::kTaintOutOfService; });
}

}  // namespace control
