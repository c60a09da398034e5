// Whether a node can mount an image as a volume of a pod. Pure.
#pragma once

#include "kube/api/node.h"

namespace control {

// True for kubelet from 1.35, where such volumes need no feature gate, with containerd from 2.1,
// which mounts them so that programs can run from there. A kubelet is never newer than its API
// server, so that takes them as well.
bool mounts_images(const kube::NodeSystemInfo& node);

}  // namespace control
