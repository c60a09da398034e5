// FeatureIndex: which nodes have a feature. In Kubernetes every label of a node is one, so there
// are more features than nodes; only those that a job has asked for are indexed.
//
// Cost: nodes_with() O(nodes × their features) when a feature is asked for the first time, then
// O(log features asked for); node_changed() O(features asked for × features of the node).
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class FeatureIndex {
 public:
  // `cluster` must outlive this.
  explicit FeatureIndex(const Cluster& cluster) : cluster_{cluster} {}

  // After a change of the topology.
  void reset() { nodes_with_.clear(); }
  // Notes that the node's features may have changed.
  void node_changed(int rank);
  // Valid until the next call of any function.
  const NodeSet& nodes_with(const std::string& feature);

 private:
  static constexpr std::size_t kKeptMax = 256;  // features; beyond that it begins again

  const Cluster& cluster_;
  std::map<std::string, NodeSet> nodes_with_;
};

}  // namespace sched
