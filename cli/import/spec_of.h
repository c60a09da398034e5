// Slurm's configuration as specs of our kinds: the inverse of translation/. Pure.
//
// A spec says what differs from the defaults of its kind. A value for which the API has no field is
// not in it: translated back, the spec differs from what it was made of.
#pragma once

#include "api/account.h"
#include "api/partition.h"
#include "api/qos.h"
#include "api/scheduler_config.h"
#include "scheduler/model/config.h"

namespace cli {

kube::SchedulerConfigSpec spec_of(const sched::ClusterParameters& cluster);
kube::PartitionSpec spec_of(const sched::PartitionConfig& partition);
kube::QosSpec spec_of(const sched::QosConfig& qos);
// Without its namespaces.
kube::AccountSpec spec_of(const sched::AccountConfig& account);
kube::AccountNamespace namespace_of(const sched::UserConfig& user);

}  // namespace cli
