// The number of pods by the spec of a Job, before the scheduler has chosen nodes.
// Pure.
#pragma once

#include "api/job.h"

namespace kube {

// Returns true if the job has one pod at a time wherever it runs: one task with a pod for each, or
// one node with a pod for each.
inline bool has_one_pod(const JobSpec& spec) {
  const bool has_one_task = spec.resources.tasks.value_or(1) == 1;
  const auto& nodes = spec.resources.nodes;
  if (nodes && nodes->max.value_or(nodes->min) != 1) return false;
  // Without a number of nodes a job has as many as its tasks need, or its devices: one for each of
  // the nodes that have them, unless it says that it is one task.
  if (!nodes)
    return has_one_task && (spec.resources.tasks || spec.resources.devices_of_job.empty());
  return has_one_task || spec.pod_policy.value_or(PodPolicy::kPerNode) == PodPolicy::kPerNode;
}

}  // namespace kube
