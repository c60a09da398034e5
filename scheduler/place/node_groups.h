// NodeGroups: what placements must know of nodes beside what jobs hold there. Nodes of one
// hardware and weight are a group (4.2.2), so that thousands of equal nodes cost one test per job.
// Memory, disk, features and states are not part of it: in Kubernetes every node has a label of its
// own, and its free memory changes with each other pod. They are kept node by node, and a change of
// one node touches that node.
//
// A structure that depends on single nodes (the base of a placement) is kept by its owner, who
// brings it up to date by the log of changed ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/change_log.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/job.h"
#include "scheduler/place/feature_index.h"
#include "scheduler/select/device_books.h"
#include "scheduler/select/memory_demand.h"

namespace sched {

struct NodeGroup {
  NodeSpec sample;  // of one node; only its hardware and weight mean something
  NodeSet nodes;
};

class NodeGroups {
 public:
  // `cluster` must outlive this.
  explicit NodeGroups(const Cluster& cluster) : cluster_{cluster}, features_{cluster} {}

  // After a change of topology or configuration. Cost: O(nodes × groups).
  void rebuild();
  // Called when the node changed without a change of topology. Cost: the feature index's.
  void node_changed(int rank);

  // Ascending weight (4.2.8), ties by the first node.
  const std::vector<NodeGroup>& all() const { return groups_; }
  // Returns the nodes that are up and not drained.
  const NodeSet& up() const { return up_; }
  // Returns the nodes that have the feature. Valid until the next call.
  const NodeSet& nodes_with(const std::string& feature) const {
    return features_.nodes_with(feature);
  }
  // No node has less: what asks for no more need not be compared node by node.
  std::int64_t memory_floor() const { return memory_floor_; }
  MemoryMiB tmp_disk_floor() const { return tmp_disk_floor_; }

  // Counts rebuilds. Between two of them the log says which ranks node_changed() named.
  std::uint64_t version() const { return version_; }
  const ChangeLog& log() const { return log_; }

 private:
  void lower_floors(const NodeSpec& node);

  const Cluster& cluster_;
  std::vector<NodeGroup> groups_;
  NodeSet up_;
  mutable FeatureIndex features_;  // filled by questions
  std::int64_t memory_floor_ = 0;
  MemoryMiB tmp_disk_floor_{0};
  std::uint64_t version_ = 0;
  ChangeLog log_;
};

// Returns true if a node of this hardware can hold its part of the job at all (4.2.2). `memory` is
// what the job asks for in its partition.
bool hardware_fits(const NodeSpec& node, const JobRequest& request, const MemoryDemand& memory);

// Returns true if the node has the memory, the disk and the devices that the job asks of each node
// (4.2.2).
inline bool capacity_fits(const NodeSpec& node, const JobRequest& request,
                          const MemoryDemand& memory) {
  return request.tmp_disk <= node.tmp_disk && memory.mib <= node.memory.value() &&
         has_devices(node, request);
}

}  // namespace sched
