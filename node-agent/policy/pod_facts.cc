#include "node-agent/policy/pod_facts.h"

#include <algorithm>

#include "api/wellknown.h"
#include "kube/api/resource_info.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {
namespace {

const kube::ContainerStatus* status_of(const std::vector<kube::ContainerStatus>& statuses,
                                       const std::string& name) {
  const auto found = std::find_if(statuses.begin(), statuses.end(),
                                  [&](const auto& status) { return status.name == name; });
  return found == statuses.end() ? nullptr : &*found;
}

bool init_is_done(const kube::Pod& pod) {
  return std::all_of(pod.spec.init_containers.begin(), pod.spec.init_containers.end(),
                     [&](const kube::Container& container) {
                       const auto* status =
                           status_of(pod.status.init_container_statuses, container.name);
                       if (status == nullptr) return false;
                       // A sidecar runs beside the containers and never ends.
                       if (container.restart_policy == "Always")
                         return status->state.running.has_value();
                       return status->state.terminated && status->state.terminated->exit_code == 0;
                     });
}

bool starts_a_container(const kube::Pod& pod) {
  const auto& ephemeral = pod.status.ephemeral_container_statuses;
  return std::any_of(ephemeral.begin(), ephemeral.end(), [](const kube::ContainerStatus& status) {
    return !status.state.running && !status.state.terminated;
  });
}

// From when on a container that started then has settled: `settle` after the whole second of its
// startedAt.
base::Instant settled_since(base::Instant started_at, base::Duration settle) {
  return base::Instant{std::chrono::floor<std::chrono::seconds>(started_at)} +
         std::chrono::seconds{1} + settle;
}

std::optional<base::Instant> settled_at(const kube::Pod& pod, base::Duration settle) {
  if (!init_is_done(pod) || pod.spec.containers.empty() || starts_a_container(pod)) {
    return std::nullopt;
  }
  base::Instant latest{};
  for (const kube::ContainerStatus& status : pod.status.ephemeral_container_statuses) {
    if (!status.state.running || !status.state.running->started_at) continue;
    latest = std::max(latest, settled_since(*status.state.running->started_at, settle));
  }
  for (const kube::Container& container : pod.spec.containers) {
    const auto* status = status_of(pod.status.container_statuses, container.name);
    if (status == nullptr) return std::nullopt;
    // A container that has ended needs no time to settle.
    if (status->state.terminated) continue;
    if (!status->state.running || !status->state.running->started_at) return std::nullopt;
    latest = std::max(latest, settled_since(*status->state.running->started_at, settle));
  }
  return latest;
}

struct JobOfPod {
  std::string uid{};
  std::string name{};
};

// Returns the kubegang Job that controls the pod, else the one that the operator's labels name: a
// pod that others have made may have another controller. Empty if the pod is of no Job.
JobOfPod job_of(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  const std::string group_prefix = std::string{kube::kGroup} + "/";
  JobOfPod job;
  if (owner != nullptr && owner->kind == "Job" && owner->api_version.starts_with(group_prefix)) {
    job = {owner->uid, owner->name};
  } else {
    const auto label = [&pod](std::string_view key) {
      const auto found = pod.metadata.labels.find(std::string{key});
      return found == pod.metadata.labels.end() ? std::string{} : found->second;
    };
    job = {label(kube::kLabelJobUid), label(kube::kLabelJob)};
  }
  // Its UID becomes a part of a line of the journal, and the API server takes any text for one.
  return is_pod_uid(job.uid) ? job : JobOfPod{};
}

std::string cpuset_of(const kube::Pod& pod) {
  const auto found = pod.metadata.annotations.find(std::string{kube::kAnnotationCpuSet});
  return found == pod.metadata.annotations.end() ? "" : found->second;
}

}  // namespace

PodFacts pod_facts(const kube::Pod& pod, base::Duration settle) {
  const JobOfPod job = job_of(pod);
  PodFacts facts{.key = kube::key_of(pod.metadata),
                 .uid = pod.metadata.uid,
                 .job_uid = job.uid,
                 .job_name = job.name,
                 .node = pod.spec.node_name.value_or(""),
                 .qos = pod.status.qos_class,
                 .cpuset = job.uid.empty() ? "" : cpuset_of(pod),
                 .finished = pod.status.phase == kube::PodPhase::kSucceeded ||
                             pod.status.phase == kube::PodPhase::kFailed,
                 .deleted_by = pod.metadata.deletion_timestamp,
                 .settled_at = settled_at(pod, settle),
                 .starts_a_container = starts_a_container(pod)};
  base::Duration grace = kGracePeriodDefault;
  if (pod.spec.termination_grace_period_seconds) {
    grace = std::chrono::seconds{*pod.spec.termination_grace_period_seconds};
  }
  if (facts.deleted_by) {
    // The deletion may have named another grace time than the spec.
    if (pod.metadata.deletion_grace_period_seconds) {
      grace = std::chrono::seconds{*pod.metadata.deletion_grace_period_seconds};
    }
    facts.ending_within = grace;
  } else if (kube::is_true(pod.status.conditions, "DisruptionTarget")) {
    facts.ending_within = grace;
  }
  return facts;
}

}  // namespace agent
