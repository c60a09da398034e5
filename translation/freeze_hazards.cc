#include "translation/freeze_hazards.h"

namespace control {
namespace {

// Each sentence stands behind the name of a field, both in the refusal of a template and in the
// reason why a pod is never frozen.
constexpr std::string_view kProbeFails = "a frozen pod fails its probe and would be restarted";
constexpr std::string_view kCannotStart = "a command cannot be started in a frozen pod";
constexpr std::string_view kCannotRestart = "a container cannot be started in a frozen pod";

}  // namespace

// HTTP and TCP hooks are not listed: kubelet sends them itself, and starts no process in the pod
// for them. A probe is a hazard whatever its kind, because a frozen program answers none.
std::vector<FreezeHazard> freeze_hazards(const kube::Container& container) {
  std::vector<FreezeHazard> hazards;
  if (!container.liveness_probe.empty()) hazards.push_back({"livenessProbe", kProbeFails});
  if (!container.startup_probe.empty()) hazards.push_back({"startupProbe", kProbeFails});
  if (!container.lifecycle) return hazards;
  const auto& [post_start, pre_stop] = *container.lifecycle;
  if (post_start && !post_start->exec.empty()) {
    hazards.push_back({"lifecycle.postStart.exec", kCannotStart});
  }
  if (pre_stop && !pre_stop->exec.empty()) {
    hazards.push_back({"lifecycle.preStop.exec", kCannotStart});
  }
  return hazards;
}

// The order is that in which a user would look: the restarts, then what single containers have. One
// reason is enough, since each of them alone keeps the pod from being frozen.
std::optional<std::string> why_never_frozen(const kube::PodSpec& spec) {
  for (const kube::Container& container : spec.init_containers) {
    // An init container that kubelet restarts is a sidecar (KEP-753). It may end and begin again at
    // any time, and a start in a frozen cgroup does not finish before the thaw.
    if (container.restart_policy != "Always") continue;
    return "container " + container.name + " has the restartPolicy Always (" +
           std::string{kCannotRestart} + ")";
  }
  for (const auto* containers : {&spec.init_containers, &spec.containers}) {
    for (const kube::Container& container : *containers) {
      const auto hazards = freeze_hazards(container);
      if (hazards.empty()) continue;
      return "container " + container.name + " has a " + std::string{hazards.front().field} + " (" +
             std::string{hazards.front().why} + ")";
    }
  }
  return std::nullopt;
}

}  // namespace control
