// Node, the pods of others on it and what its agent reports -> sched::NodeSpec. Pure.
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

namespace control {

// What a foreign pod (one that no Job of ours controls) takes from its node. Zero once it is
// Succeeded or Failed.
kube::Bytes memory_request(const kube::Pod& pod);

struct NodeFacts {
  const kube::Node* node = nullptr;
  const kube::NodeTimetableStatus* agent = nullptr;  // null: no agent has reported yet
  kube::Bytes foreign_memory{0};                     // of all foreign pods on it
  int foreign_pods = 0;                              // of them those that are not finished
  // Pods of ours are on it whose job does not exist any more: nothing new until they are gone.
  bool has_orphans = false;
  int memory_reserve_percent = 5;  // SchedulerConfig.spec.nodeReserve
  bool gang = true;                // jobs may be stacked, so an agent has to be there
  kube::ClockPolicy clock = kube::ClockPolicy::kWarn;
};

struct NodeVerdict {
  sched::NodeSpec spec;
  std::string why;  // why it is not kUp, for the log; empty when it is
};

// A node takes no new jobs (kDrain) while it is cordoned, tainted by its own lifecycle, its agent
// is not Ready where gangs need it, or orphans of ours are on it; it is kDown while its kubelet is
// not Ready. CPUs come from the agent's topology, flat from allocatable until it is known. Memory
// is allocatable − foreign requests − the reserve, the number of pods allocatable − foreign pods.
NodeVerdict translate_node(const NodeFacts& facts);

// Why the node counts as lost for good: somebody tainted it out-of-service.
bool is_out_of_service(const kube::Node& node);
// The kubelet says so itself; Unknown (it is not heard) is not ready.
bool is_ready(const kube::Node& node);

}  // namespace control
