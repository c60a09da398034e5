// Groups pods that others have made, which wait behind kubegang's scheduling gate, into gangs, and
// derives the kubegang Job for each. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/job.h"
#include "kube/api/pod.h"

namespace control {

// A gang as a label of its pods names it. Gangs that are named in two ways are two gangs, even if
// their names are equal.
struct GangName {
  enum class By {
    kJobName,  // our label
    kPodGroup  // a label of the coscheduling plugin
  };
  By by = By::kJobName;
  std::string name{};  // "" = the pod names no gang

  friend auto operator<=>(const GangName&, const GangName&) = default;
};

// Returns the gang that the labels of a pod name, or of a Job that stands for a gang; kubegang's
// label comes first, and those of the coscheduling plugin count only if `heeds_groups`.
GangName gang_of(const kube::Labels& labels, bool heeds_groups);

struct PodGangVerdict {
  enum class Kind {
    kIncomplete,  // pods are missing
    kRefused,     // the gang cannot run as its pods are
    kComplete
  };
  Kind kind = Kind::kIncomplete;
  std::string message{};  // of the first two kinds: whole sentences
  kube::Job job{};        // to be created; meaningless unless the gang is complete
};

// The facts about a gang that its PodGroup has.
struct PodGroupFacts {
  std::optional<std::int32_t> min_member{};
  bool grows = false;  // pods have come or gone a moment ago
};

// Each pod is a task. All pods must have the same annotations, except for CPUs: a gang has one
// shape, so the largest CPUs and memory count. The CPUs of a pod are its annotation, else its CPU
// limits, rounded up. kube-scheduler and kubelet add up the CPU requests of all gangs of a node, so
// these must be as small as those of kubegang's pods, 1m per CPU.
// The Job's name follows from the UIDs of the pods, so that a second leader asks for the same Job
// and makes no other.
//
// `group`: that of a gang that a PodGroup names; all pods that exist are of the gang once there are
// as many as its minMember and it no longer grows. With the annotation kubegang.io/pods it has
// exactly that number of pods, as any other gang. REQUIRES: the pods have kubegang's gate and the
// same gang, are not being deleted, and are sorted by name.
PodGangVerdict translate_pod_gang(std::span<const std::shared_ptr<const kube::Pod>> pods,
                                  const GangName& gang, const PodGroupFacts& group = {});

}  // namespace control
