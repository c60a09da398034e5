// Node, other pods on it and the report of its agent -> sched::NodeSpec. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "api/scheduler_config.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "scheduler/model/core_set.h"
#include "scheduler/model/node.h"
#include "translation/devices.h"

namespace control {

// Returns the memory that a foreign pod (of no kubegang Job) takes from its node. Zero once it is
// Succeeded or Failed.
kube::Bytes memory_request(const kube::Pod& pod);

// The state of an agent as its pods show it, the best last.
enum class AgentPod {
  kMissing,     // there is none
  kNotRunning,  // its container does not run: nothing switches the node's pods
  kNotReady,    // it runs, but starts, stops, or does not answer its probe
  kReady,
};

// Returns true if nothing is frozen on the node, whatever its timetable says: its agent said so, or
// is gone, after which what it had frozen is thawed. `table` null: no agent was ever there, and
// nothing is frozen that would have to be counted.
bool is_unsliced(const kube::NodeTimetable* table, std::optional<AgentPod> agent_pod);

struct NodeFacts {
  const kube::Node* node = nullptr;
  const kube::NodeTimetableStatus* agent = nullptr;  // null: no agent has reported yet
  std::optional<AgentPod> agent_pod{};               // nullopt: agents are not pods here
  kube::Bytes foreign_memory{0};                     // of all foreign pods on it
  int foreign_pods = 0;                              // of them those that are not finished
  DeviceResources foreign_devices{};                 // of all of them
  // The node has pods of kubegang whose job no longer exists: nothing new until they are gone.
  bool has_orphans = false;
  int memory_reserve_percent = 5;  // SchedulerConfig.spec.nodeReserve
  bool needs_agent = true;         // it takes jobs only while its agent is ready
  kube::ClockPolicy clock = kube::ClockPolicy::kWarn;
  kube::DevicesConfig devices{};  // SchedulerConfig.spec.devices
};

// Why a node takes no new jobs.
struct NodeProblem {
  std::string reason;   // a word in CamelCase (api/wellknown.h)
  std::string message;  // with the node as its subject: "is cordoned"; it names no single node
  friend auto operator<=>(const NodeProblem&, const NodeProblem&) = default;
};

// Why the node's agent, on which turns depend, does not do its work; nullopt: it is ready.
std::optional<NodeProblem> agent_problem(const NodeFacts& facts);

struct NodeVerdict {
  sched::NodeSpec spec;
  std::optional<NodeProblem> problem;  // nullopt: it is kUp
};

// A node takes no new jobs (kDrain) while it is cordoned, tainted by its own lifecycle, its agent
// is not Ready where gangs need it (by its pod, or by its own word), or orphans are on it;
// it is kDown while its kubelet is not Ready. CPUs come from the agent's topology, flat from
// allocatable until it is known. Memory is allocatable − foreign requests − the reserve, the number
// of pods allocatable − foreign pods.
NodeVerdict translate_node(const NodeFacts& facts);

// Returns true if the node is lost for good: an administrator tainted it out-of-service.
bool is_out_of_service(const kube::Node& node);
// The kubelet says so itself; Unknown (it is not heard) is not ready.
bool is_ready(const kube::Node& node);

}  // namespace control
