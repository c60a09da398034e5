// Nodes of one configuration: equal in shape, weight and features (4.2.2). Groups are what node
// sets are made of, so that thousands of equal nodes cost one test per job.
#pragma once

#include <vector>

#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/place/constraint.h"
#include "scheduler/select/memory_demand.h"

namespace sched {

struct NodeGroup {
  NodeSpec sample;  // of one node; its name and state mean nothing
  NodeSet nodes;
};

class NodeGroups {
 public:
  // Ascending weight (4.2.8), ties by the first node. Cost: O(nodes × groups).
  void rebuild(const Cluster& cluster);
  const std::vector<NodeGroup>& all() const { return groups_; }
  // Nodes that are up and not drained.
  const NodeSet& up() const { return up_; }

 private:
  std::vector<NodeGroup> groups_;
  NodeSet up_;
};

// Whether a node of this configuration can hold its part of the job at all (4.2.2). `memory` is
// what the job asks for in its partition.
bool group_fits(const NodeSpec& node, const JobRequest& request, const MemoryDemand& memory);

}  // namespace sched
