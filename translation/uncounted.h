// Requests of a pod that nothing counts. kubelet refuses or ignores a pod that names its node and
// asks for more of it than there is, and freezing one of two gangs does not take from it what both
// have. So each of them is refused, with the same sentence for Jobs, batch Jobs and pods behind
// kubegang's gate. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/pod.h"

namespace control {

// CPU and memory (pod_shape.h), and ephemeral storage, which is a filter as sbatch's --tmp. Which
// devices are counted is for the configuration to say (translate_job).
bool is_counted(std::string_view resource);

// The most resources of a container that are named if they are not counted.
inline constexpr std::size_t kUncountedToldMax = 4;

// Returns the first port of the container that it takes of its node; null if it takes none. In the
// node's network each port that is listed is one.
const kube::ContainerPort* port_of_node(const kube::Container& container, bool host_network);

// Returns whole sentences, each of which begins with `prefix` and the name of a field of the pod's
// spec; empty if everything that the pod asks for is counted.
std::vector<std::string> uncounted_of(const kube::PodSpec& spec, std::string_view prefix);

}  // namespace control
