// Fields of a pod that do not go with being frozen. A template that has it is refused; a mutating
// webhook of the cluster may add it all the same, and then the job's pods are never frozen
// (architecture.md 4). The API server refuses changes of these fields in a pod that exists, so that
// no change of a pod exempts its job from its turns. Readiness probes are not among them: one that
// fails only takes the pod out of its Service. Neither is a deadline of the pod: it ends the pod,
// frozen or not, and may be set while the pod runs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/pod.h"

namespace control {

struct FreezeHazard {
  std::string_view field;  // of the container: "livenessProbe", "lifecycle.preStop.exec"
  std::string_view why;
};
std::vector<FreezeHazard> freeze_hazards(const kube::Container& container);

// Returns the first reason not to freeze a pod: "container proxy has a livenessProbe (a frozen pod
// …)", likewise a sidecar that kubelet restarts.
std::optional<std::string> why_never_frozen(const kube::PodSpec& spec);

}  // namespace control
