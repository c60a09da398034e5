#include "scheduler/model/reason_names.h"

#include <array>
#include <utility>

namespace sched {
namespace {

// Slurm's spelling of each reason (2.4), as squeue shows it. Timeslice, Preempted and User, the
// reasons of suspended jobs, are this scheduler's own.
constexpr auto kNames = std::to_array<std::pair<Reason, std::string_view>>({
    {Reason::kNone, "None"},
    {Reason::kPriority, "Priority"},
    {Reason::kResources, "Resources"},
    {Reason::kDependency, "Dependency"},
    {Reason::kDependencyNeverSatisfied, "DependencyNeverSatisfied"},
    {Reason::kBeginTime, "BeginTime"},
    {Reason::kJobHeldUser, "JobHeldUser"},
    {Reason::kJobHeldAdmin, "JobHeldAdmin"},
    {Reason::kJobHoldMaxRequeue, "JobHoldMaxRequeue"},
    {Reason::kLaunchFailedRequeuedHeld, "LaunchFailedRequeuedHeld"},
    {Reason::kLicenses, "Licenses"},
    {Reason::kPartitionTimeLimit, "PartitionTimeLimit"},
    {Reason::kPartitionNodeLimit, "PartitionNodeLimit"},
    {Reason::kPartitionDown, "PartitionDown"},
    {Reason::kPartitionInactive, "PartitionInactive"},
    {Reason::kPartitionConfig, "PartitionConfig"},
    {Reason::kQosNotAllowed, "QOSNotAllowed"},
    {Reason::kInvalidQos, "InvalidQOS"},
    {Reason::kReqNodeNotAvail, "ReqNodeNotAvail"},
    {Reason::kBadConstraints, "BadConstraints"},
    {Reason::kMaxMemPerLimit, "MaxMemPerLimit"},
    {Reason::kJobArrayTaskLimit, "JobArrayTaskLimit"},
    {Reason::kDeadline, "DeadLine"},
    {Reason::kTimeslice, "Timeslice"},
    {Reason::kPreempted, "Preempted"},
    {Reason::kUser, "User"},
    // Limits of an account, or of a user in one (9.1): on what a group holds together …
    {Reason::kAssocGrpCpuLimit, "AssocGrpCpuLimit"},
    {Reason::kAssocGrpMemLimit, "AssocGrpMemLimit"},
    {Reason::kAssocGrpNodeLimit, "AssocGrpNodeLimit"},
    {Reason::kAssocGrpBilling, "AssocGrpBilling"},
    {Reason::kAssocGrpGres, "AssocGrpGRES"},
    {Reason::kAssocGrpJobsLimit, "AssocGrpJobsLimit"},
    {Reason::kAssocGrpWallLimit, "AssocGrpWallLimit"},
    // … on each job, on the mean of its nodes, and on a user's jobs.
    {Reason::kAssocMaxCpuPerJobLimit, "AssocMaxCpuPerJobLimit"},
    {Reason::kAssocMaxMemPerJob, "AssocMaxMemPerJob"},
    {Reason::kAssocMaxNodePerJobLimit, "AssocMaxNodePerJobLimit"},
    {Reason::kAssocMaxBillingPerJob, "AssocMaxBillingPerJob"},
    {Reason::kAssocMaxGresPerJob, "AssocMaxGRESPerJob"},
    {Reason::kAssocMaxCpuPerNode, "AssocMaxCpuPerNode"},
    {Reason::kAssocMaxMemPerNode, "AssocMaxMemPerNode"},
    {Reason::kAssocMaxBillingPerNode, "AssocMaxBillingPerNode"},
    {Reason::kAssocMaxGresPerNode, "AssocMaxGRESPerNode"},
    {Reason::kAssocMaxJobsLimit, "AssocMaxJobsLimit"},
    {Reason::kAssocMaxWallDurationPerJobLimit, "AssocMaxWallDurationPerJobLimit"},
    // The same of a QOS, whether the job's or its partition's …
    {Reason::kQosGrpCpuLimit, "QOSGrpCpuLimit"},
    {Reason::kQosGrpMemLimit, "QOSGrpMemLimit"},
    {Reason::kQosGrpNodeLimit, "QOSGrpNodeLimit"},
    {Reason::kQosGrpBilling, "QOSGrpBilling"},
    {Reason::kQosGrpGres, "QOSGrpGRES"},
    {Reason::kQosGrpJobsLimit, "QOSGrpJobsLimit"},
    {Reason::kQosGrpWallLimit, "QOSGrpWallLimit"},
    {Reason::kQosMaxCpuPerJobLimit, "QOSMaxCpuPerJobLimit"},
    {Reason::kQosMaxMemoryPerJob, "QOSMaxMemoryPerJob"},
    {Reason::kQosMaxNodePerJobLimit, "QOSMaxNodePerJobLimit"},
    {Reason::kQosMaxBillingPerJob, "QOSMaxBillingPerJob"},
    {Reason::kQosMaxGresPerJob, "QOSMaxGRESPerJob"},
    {Reason::kQosMaxCpuPerNode, "QOSMaxCpuPerNode"},
    {Reason::kQosMaxMemoryPerNode, "QOSMaxMemoryPerNode"},
    {Reason::kQosMaxBillingPerNode, "QOSMaxBillingPerNode"},
    {Reason::kQosMaxGresPerNode, "QOSMaxGRESPerNode"},
    // … and what only a QOS can limit: resources of each user, the least of a job, and what each
    // account holds in it.
    {Reason::kQosMaxCpuPerUserLimit, "QOSMaxCpuPerUserLimit"},
    {Reason::kQosMaxMemoryPerUser, "QOSMaxMemoryPerUser"},
    {Reason::kQosMaxNodePerUserLimit, "QOSMaxNodePerUserLimit"},
    {Reason::kQosMaxBillingPerUser, "QOSMaxBillingPerUser"},
    {Reason::kQosMaxGresPerUser, "QOSMaxGRESPerUser"},
    {Reason::kQosMaxJobsPerUserLimit, "QOSMaxJobsPerUserLimit"},
    {Reason::kQosMaxWallDurationPerJobLimit, "QOSMaxWallDurationPerJobLimit"},
    {Reason::kQosMinCpuNotSatisfied, "QOSMinCpuNotSatisfied"},
    {Reason::kQosMinMemory, "QOSMinMemory"},
    {Reason::kQosMinNode, "QOSMinNode"},
    {Reason::kQosMinBilling, "QOSMinBilling"},
    {Reason::kQosMinGres, "QOSMinGRES"},
    {Reason::kMaxCpuPerAccount, "MaxCpuPerAccount"},
    {Reason::kMaxMemoryPerAccount, "MaxMemoryPerAccount"},
    {Reason::kMaxNodePerAccount, "MaxNodePerAccount"},
    {Reason::kMaxBillingPerAccount, "MaxBillingPerAccount"},
    {Reason::kMaxGresPerAccount, "MaxGRESPerAccount"},
    {Reason::kMaxJobsPerAccount, "MaxJobsPerAccount"},
});

}  // namespace

// Linear searches: names are made for users and stored in statuses, not within a pass.
std::string_view name_of(Reason reason) {
  for (const auto& [value, name] : kNames) {
    if (value == reason) return name;
  }
  return "Unknown";
}

// Exactly as it is spelled above; nullopt for the reason of another version.
std::optional<Reason> parse_reason(std::string_view name) {
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace sched
