// Groups pods that others have made, which wait behind our scheduling gate, into gangs, and derives
// the Job of ours for each. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/job.h"
#include "kube/api/pod.h"

namespace control {

// Returns the gang that the pod's label names; "" if it has none.
std::string gang_of(const kube::Pod& pod);

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

// Each pod is a task. All pods must have the same annotations, except for CPUs: a gang has one
// shape, so the largest CPUs and memory count. The CPUs of a pod are its annotation, else its CPU
// limits, rounded up. kube-scheduler and kubelet add up the CPU requests of all gangs of a node, so
// these must be as small as those of our own pods, 1m per CPU. The Job's name follows from the UIDs
// of the pods, so no two leaders make two Jobs. REQUIRES: the pods have our gate and the same gang,
// are not being deleted, and are sorted by name.
PodGangVerdict translate_pod_gang(std::span<const std::shared_ptr<const kube::Pod>> pods);

}  // namespace control
