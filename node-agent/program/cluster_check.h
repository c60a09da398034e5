// `kubegang-agent check --whole-cluster`: what the agents of all nodes have found, from the
// conditions of their NodeTimetables. `helm test` runs it.
#pragma once

#include <string>
#include <vector>

#include "api/node_timetable.h"
#include "api/partition.h"

namespace agent {

struct ClusterCheck {
  std::string table{};  // a line for each node; below it what to change
  // All nodes that take turns are obeying (or switched off by a person), and none lacks what it
  // needs. There are such nodes, or partitions with nodes, none of which takes turns.
  bool passed = false;
};
// Pure.
ClusterCheck check_cluster(const std::vector<kube::NodeTimetable>& nodes,
                           const std::vector<kube::Partition>& partitions);

// Asks until the check passes, a minute at most, and as long for the first timetable; prints the
// table. Returns the exit code.
int run_cluster_check(const std::string& kubeconfig);

}  // namespace agent
