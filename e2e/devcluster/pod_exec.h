// Programs that are started in running containers (kubectl exec).
#pragma once

#include "e2e/devcluster/kubelet/kubelet.h"
#include "kube/testing/api_server/api_server.h"

namespace devcluster {

// Answers GET …/pods/NAME/exec with programs beside those of `kubelet`, which outlives the server.
PodExecHook pod_exec_hook(const Kubelet& kubelet);

}  // namespace devcluster
