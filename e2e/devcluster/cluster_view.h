// The jobs and timetables of the cluster as of a moment ago, for the demo's table.
#pragma once

#include <string>
#include <vector>

#include "api/job.h"
#include "api/node_timetable.h"
#include "base/result.h"
#include "kube/transport.h"

namespace devcluster {

struct ClusterView {
  std::vector<kube::Job> jobs;  // by time of creation, then name
  std::vector<kube::NodeTimetable> timetables;

  const kube::Job* job(const std::string& name) const;  // null: there is none
};

base::Result<ClusterView> read_cluster(kube::Transport& transport);

// Returns the nodes whose agent has reported that it is ready.
std::size_t agents_ready(const ClusterView& view);

// Returns the names of the pods that are not gone yet.
base::Result<std::vector<std::string>> pod_names(kube::Transport& transport);

}  // namespace devcluster
