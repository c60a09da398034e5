// The typed calls for the kinds of kubegang.io.
#include "kube/client_calls.h"

#include "api/account.h"
#include "api/job.h"
#include "api/node_timetable.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "api/usage_record.h"

namespace kube {

KUBE_CLIENT_CALLS(Account);
KUBE_CLIENT_CALLS(Job);
KUBE_CLIENT_CALLS(NodeTimetable);
KUBE_CLIENT_CALLS(Partition);
KUBE_CLIENT_CALLS(Qos);
KUBE_CLIENT_CALLS(SchedulerConfig);
KUBE_CLIENT_CALLS(UsageRecord);

}  // namespace kube
