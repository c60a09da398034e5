// `kubegang-agent check --whole-cluster`: what the agents of all nodes have found, from the
// conditions of their NodeTimetables. `helm test` runs it.
#pragma once

#include <string>
#include <vector>

#include "api/node_timetable.h"

namespace agent {

struct ClusterCheck {
  std::string table{};  // a line for each node; below it what to change
  bool passed = false;  // there are nodes, all are obeying (or switched off by a person), and none
                        // lacks what it needs
};
// Pure.
ClusterCheck check_cluster(const std::vector<kube::NodeTimetable>& nodes);

// Asks until the check passes, a minute at most; prints the table. Returns the exit code.
int run_cluster_check(const std::string& kubeconfig);

}  // namespace agent
