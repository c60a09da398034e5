#include "node-agent/policy/pod_facts.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "api/wellknown.h"
#include "kube/api/resource_info.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {
namespace {

// Spec and status list containers in any order and join by name; null before kubelet has reported
// one.
const kube::ContainerStatus* status_of(const std::vector<kube::ContainerStatus>& statuses,
                                       const std::string& name) {
  const auto found = std::find_if(statuses.begin(), statuses.end(),
                                  [&](const auto& status) { return status.name == name; });
  return found == statuses.end() ? nullptr : &*found;
}

// Returns true if no init container will start: ordinary ones have ended well, sidecars
// run.
bool init_is_done(const kube::Pod& pod) {
  return std::all_of(pod.spec.init_containers.begin(), pod.spec.init_containers.end(),
                     [&](const kube::Container& container) {
                       const auto* status =
                           status_of(pod.status.init_container_statuses, container.name);
                       if (status == nullptr) return false;
                       // Kubernetes 1.28 and later: an init container with restartPolicy Always.
                       // A sidecar runs beside the containers and never ends.
                       if (container.restart_policy == "Always")
                         return status->state.running.has_value();
                       return status->state.terminated && status->state.terminated->exit_code == 0;
                     });
}

// Ephemeral containers (`kubectl debug`) are the only ones that are added to a running pod.
std::size_t starting_count(const kube::Pod& pod) {
  const auto& ephemeral = pod.status.ephemeral_container_statuses;
  const auto waits = [](const kube::ContainerStatus& status) {
    return !status.state.running && !status.state.terminated;
  };
  return static_cast<std::size_t>(std::count_if(ephemeral.begin(), ephemeral.end(), waits));
}

// Returns when a container that started then has settled. kubelet writes startedAt in whole
// seconds, rounded down, so the container may have started up to a second later.
base::Instant settled_since(base::Instant started_at, base::Duration settle) {
  return base::Instant{std::chrono::floor<std::chrono::seconds>(started_at)} +
         std::chrono::seconds{1} + settle;
}

// Returns the latest such instant of all containers; nullopt while one of the template's has not
// started, since the runtime is still at work in the pod.
std::optional<base::Instant> settled_at(const kube::Pod& pod, base::Duration settle) {
  if (!init_is_done(pod) || pod.spec.containers.empty()) return std::nullopt;
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

// The API server takes any number of seconds. Cut to a year, which no node waits for: more of them
// could not be counted in microseconds.
base::Duration grace_of(std::int64_t seconds_count) {
  constexpr std::int64_t kGraceSecondsMax = 365 * 24 * 3600;
  return std::chrono::seconds{std::clamp<std::int64_t>(seconds_count, 0, kGraceSecondsMax)};
}

struct JobOfPod {
  std::string uid{};
  std::string name{};
  bool is_controller = false;  // else the Job has adopted the pod
};

// Returns the kubegang Job that controls the pod, else the one that the operator's labels name: a
// pod that others have made may have another controller. Empty if the pod has no Job.
JobOfPod job_of(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  const std::string group_prefix = std::string{kube::kGroup} + "/";
  JobOfPod job;
  if (owner != nullptr && owner->kind == "Job" && owner->api_version.starts_with(group_prefix)) {
    job = {owner->uid, owner->name, true};
  } else {
    const auto label = [&pod](std::string_view key) {
      const auto found = pod.metadata.labels.find(std::string{key});
      return found == pod.metadata.labels.end() ? std::string{} : found->second;
    };
    job = {label(kube::kLabelJobUid), label(kube::kLabelJob)};
  }
  // The UID becomes a part of a line of the journal, and the API server takes any text for one.
  return is_pod_uid(job.uid) ? job : JobOfPod{};
}

// Only a pod that may be frozen needs to settle.
bool containers_count(const kube::Pod& pod) {
  return !is_finished(pod) && !job_of(pod).uid.empty();
}

std::string cpuset_of(const kube::Pod& pod) {
  const auto found = pod.metadata.annotations.find(std::string{kube::kAnnotationCpuSet});
  return found == pod.metadata.annotations.end() ? "" : found->second;
}

}  // namespace

// Everything of a pod on which a rule of NodePolicy depends, and nothing else: two pods with equal
// facts are treated alike.
PodFacts pod_facts(const kube::Pod& pod, base::Duration settle) {
  const JobOfPod job = job_of(pod);
  PodFacts facts{.key = kube::key_of(pod.metadata),
                 .uid = pod.metadata.uid,
                 .job_uid = job.uid,
                 .job_name = job.name,
                 .node = pod.spec.node_name.value_or(""),
                 .qos = pod.status.qos_class,
                 .cpuset = job.uid.empty() ? "" : cpuset_of(pod),
                 .finished = is_finished(pod),
                 .deleted_by = pod.metadata.deletion_timestamp,
                 .settled_at = containers_count(pod) ? settled_at(pod, settle) : std::nullopt,
                 .starting_count = containers_count(pod) ? starting_count(pod) : 0};
  // The API server sets the field of every pod, so the default is for objects that were not made by
  // one.
  base::Duration grace = kGracePeriodDefault;
  if (pod.spec.termination_grace_period_seconds) {
    grace = grace_of(*pod.spec.termination_grace_period_seconds);
  }
  if (facts.deleted_by) {
    // The deletion may have named another grace time than the spec. A longer one counts of
    // a pod that the operator deletes: it ends the gang of any other pod of such a job.
    // Gated pods are deleted by their makers, and then no deletion buys more than the
    // spec.
    if (pod.metadata.deletion_grace_period_seconds) {
      const base::Duration named = grace_of(*pod.metadata.deletion_grace_period_seconds);
      grace = job.is_controller ? named : std::min(named, grace);
    }
    facts.ending_within = grace;
    // The eviction API, a taint or the scheduler's preemption announces the end with this condition
    // before the deletion follows. The pod gets its grace time from then on.
  } else if (kube::is_true(pod.status.conditions, "DisruptionTarget")) {
    facts.ending_within = grace;
  }
  return facts;
}

// Runs for every pod of the node before the informer stores it.
void keep_what_facts_need(kube::Pod& pod) {
  const bool is_of_a_job = !job_of(pod).uid.empty();
  std::erase_if(pod.metadata.annotations, [is_of_a_job](const auto& entry) {
    return !is_of_a_job || entry.first != kube::kAnnotationCpuSet;
  });
  std::erase_if(pod.metadata.labels, [](const auto& label) {
    return label.first != kube::kLabelJob && label.first != kube::kLabelJobUid;
  });
  // Owners that are not the controller decide nothing here (job_of()).
  std::erase_if(pod.metadata.owner_references, [](const auto& owner) { return !owner.controller; });
  kube::PodSpec kept;
  kept.node_name = std::move(pod.spec.node_name);
  kept.termination_grace_period_seconds = pod.spec.termination_grace_period_seconds;
  // Names and restart policies are all that settled_at() compares with the states. Other pods keep
  // not even that: most pods of a node belong to no Job, and the agent's memory must not grow with
  // them.
  if (containers_count(pod)) {
    const auto keep = [](std::vector<kube::Container>& from, std::vector<kube::Container>& to) {
      for (kube::Container& container : from) {
        to.push_back({.name = std::move(container.name),
                      .restart_policy = std::move(container.restart_policy)});
      }
    };
    keep(pod.spec.init_containers, kept.init_containers);
    keep(pod.spec.containers, kept.containers);
  } else {
    pod.status.init_container_statuses.clear();
    pod.status.container_statuses.clear();
    pod.status.ephemeral_container_statuses.clear();
  }
  pod.spec = std::move(kept);
}

}  // namespace agent
