// The typed calls for the kinds that Kubernetes has, and for those of projects beside it.
#include "kube/client_calls.h"

#include "kube/api/batch_job.h"
#include "kube/api/event.h"
#include "kube/api/lease.h"
#include "kube/api/namespace.h"
#include "kube/api/node.h"
#include "kube/api/pod.h"
#include "kube/api/pod_group.h"
#include "kube/api/service.h"

namespace kube {

KUBE_CLIENT_CALLS(BatchJob);
KUBE_CLIENT_CALLS(Event);
KUBE_CLIENT_CALLS(Lease);
KUBE_CLIENT_CALLS(Namespace);
KUBE_CLIENT_CALLS(Node);
KUBE_CLIENT_CALLS(Pod);
KUBE_CLIENT_CALLS(PodGroup);
KUBE_CLIENT_CALLS(Service);

}  // namespace kube
