// The time that a pod may take to end once its deletion was asked for. Its author writes the grace
// period, which is not checked if the pod only claims to be of a kubegang Job: ten years are as
// legal as ten seconds. Such a pod would keep its node that long. Pure.
#pragma once

#include <chrono>
#include <optional>

#include "kube/api/pod.h"

namespace control {

// Returns true if the pod is being deleted, with a grace period of at most `longest`.
inline bool is_ending_within(const kube::Pod& pod, std::chrono::seconds longest) {
  return pod.metadata.deletion_timestamp &&
         pod.metadata.deletion_grace_period_seconds.value_or(0) <= longest.count();
}

// Returns the grace period to ask for: `longest` if the pod's own is longer, or if it is being
// deleted with a longer one, which Kubernetes then shortens. nullopt: the pod's own.
inline std::optional<std::chrono::seconds> grace_within(const kube::Pod& pod,
                                                        std::chrono::seconds longest) {
  const bool is_too_long =
      pod.spec.termination_grace_period_seconds.value_or(0) > longest.count() ||
      (pod.metadata.deletion_timestamp && !is_ending_within(pod, longest));
  return is_too_long ? std::optional{longest} : std::nullopt;
}

}  // namespace control
