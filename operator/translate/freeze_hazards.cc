#include "operator/translate/freeze_hazards.h"

namespace control {
namespace {

constexpr std::string_view kProbeFails = "a frozen pod fails its probe and would be restarted";
constexpr std::string_view kCannotStart = "a command cannot be started in a frozen pod";
constexpr std::string_view kCannotRestart = "a container cannot be started in a frozen pod";
constexpr std::string_view kDeadline =
    "the time goes on while a pod is frozen, and kubelet ends it";

}  // namespace

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

std::optional<std::string> why_never_frozen(const kube::PodSpec& spec) {
  if (spec.active_deadline_seconds) {
    return "activeDeadlineSeconds is set (" + std::string{kDeadline} + ")";
  }
  for (const kube::Container& container : spec.init_containers) {
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
