// A pod's own view beside the machine's: its host name, its volumes of Secrets, its way to ask
// for names. Other kinds of volumes do not exist here.
#pragma once

#include <string>

#include "base/result.h"
#include "e2e/devcluster/kubelet/spawn.h"
#include "kube/api/pod.h"
#include "kube/client.h"

namespace devcluster {

// Adds to `spec` what the container sees; files for it are made below `directory`. Reads the pod
// again, with all its fields, and its Secrets. An error is one of the pod's configuration, such as
// a Secret that does not exist.
base::Status add_view(const kube::Client& client, const kube::Pod& pod,
                      const kube::Container& container, const std::string& directory,
                      SpawnSpec& spec);

}  // namespace devcluster
