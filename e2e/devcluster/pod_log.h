// GET …/pods/NAME/log of the devcluster: the file that the process kubelet writes, as the stream
// that the API server sends.
#pragma once

#include "e2e/devcluster/kubelet/kubelet.h"
#include "kube/testing/api_server/api_server.h"

namespace devcluster {

// `kubelet` must outlive the server's requests. Refused with a sentence:
// sinceSeconds (a process's output has no times), previous (a container runs once).
PodLogHook pod_log_hook(const Kubelet& kubelet);

}  // namespace devcluster
