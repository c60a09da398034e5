// The CPUs that a pod is bound to, from the cores that its job has on the node. Pure.
#pragma once

#include <optional>
#include <string>

#include "api/node_timetable.h"

namespace control {

// CPU numbers of these cores ("0-3,8", the numbers of cores) on a node of that topology. "" =
// nothing to bind: all cores, or the topology is not known. The topology's cpuIDs name the threads
// of core 0, then those of core 1, and so on.
std::string cpuset_of(const std::string& cores, const std::optional<kube::NodeTopology>& topology);

}  // namespace control
