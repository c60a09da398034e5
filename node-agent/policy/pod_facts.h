// The facts of a pod that the agent needs, taken from its API object: a value, compared with ==.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/api/pod.h"

namespace agent {

struct PodFacts {
  kube::ObjectKey key{};
  std::string uid{};
  // The UID of the kubegang Job that controls the pod or, by the operator's label, has adopted it;
  // "" = none.
  std::string job_uid{};
  std::string job_name{};
  std::string node{};
  std::optional<kube::QosClass> qos{};
  std::string cpuset{};   // of its annotation, if a Job controls it; "" = it is bound to no CPUs
  bool finished = false;  // Succeeded or Failed
  // Deletion or eviction under way: set while it is, with how long the pod may take.
  std::optional<base::Duration> ending_within{};
  // When that time is over, by the API server's clock, for a pod that is being deleted; nullopt for
  // one that is only disrupted.
  std::optional<base::Instant> deleted_by{};
  // The instant from which the containers that have started count as settled; nothing while one of
  // spec.containers has yet to start or an init container is not done, and of a pod that is of no
  // Job or has ended.
  std::optional<base::Instant> settled_at{};
  // How many ephemeral containers (kubectl debug) have yet to start, which they could not in a
  // frozen pod. One whose image does not exist never does, and Kubernetes removes none.
  std::size_t starting_count = 0;

  friend bool operator==(const PodFacts&, const PodFacts&) = default;
};

// Kubernetes' own default.
inline constexpr base::Duration kGracePeriodDefault = std::chrono::seconds{30};

// `settle`: how long every container must have been running, beyond the whole second of its
// startedAt (which the API gives in whole seconds). SOURCE: architecture.md 2 "Starting into
// contention", 4; freezer.md rule 5.
PodFacts pod_facts(const kube::Pod& pod, base::Duration settle);

// Drops all that pod_facts() does not read; it says the same afterwards. The agent's memory limit
// is small (the chart says 64 MiB), users choose up to a megabyte of each pod, and a pod that
// kubelet refused stays as an object.
void keep_what_facts_need(kube::Pod& pod);

}  // namespace agent
