#include "translation/limits_translation.h"

#include <cstdint>

#include "kube/api/time_format.h"
#include "translation/units.h"

namespace control {
namespace {

// Billing is counted in millionths, so an amount times a million must fit into 64 bits.
constexpr std::int64_t kAmountMax = INT64_MAX / 1'000'000;

// Memory must be above 0, because with 0 no job could start.
// For counts 0 is a limit: none may be used.
void check_amounts(const std::string& field, const std::optional<kube::ResourceAmounts>& amounts,
                   SpecProblems& problems) {
  if (!amounts) return;
  problems.range(field + ".cpus", amounts->cpus, 0, kAmountMax);
  problems.range(field + ".nodes", amounts->nodes, 0, kAmountMax);
  problems.range(field + ".billing", amounts->billing, 0, kAmountMax);
  problems.range(field + ".gpus", amounts->gpus, 0, kAmountMax);
  problems.by_gpu_type(field + ".gpusOfType", amounts->gpus_of_type, kAmountMax);
  if (amounts->memory && amounts->memory->value() <= 0) {
    problems.add(field + ".memory: " + kube::format_bytes(*amounts->memory) +
                 " is not possible; use more than 0, or leave it out for no limit");
  }
}

// Checks a group of limits with these counts.
template <typename Counts>
void check_counts(const std::string& field, const std::optional<Counts>& counts,
                  SpecProblems& problems) {
  if (!counts) return;
  problems.range(field + ".jobs", counts->jobs, 0, INT32_MAX);
  problems.range(field + ".submittedJobs", counts->submitted_jobs, 0, INT32_MAX);
}

// Checks the limits that QOS and accounts have in common. `field` is where they stand in the
// object.
template <typename Limits>
void check_common(const std::string& field, const Limits& limits, SpecProblems& problems) {
  check_counts(field + ".group", limits.group, problems);
  if (limits.group) {
    check_amounts(field + ".group.resources", limits.group->resources, problems);
    problems.not_negative(field + ".group.runTime", limits.group->run_time);
  }
  if (limits.per_job) {
    const std::string job = field + ".perJob";
    check_amounts(job + ".resources", limits.per_job->resources, problems);
    check_amounts(job + ".resourcesPerNode", limits.per_job->resources_per_node, problems);
    if (limits.per_job->time && limits.per_job->time->count() <= 0) {
      problems.add(job + ".time: " + kube::format_duration(*limits.per_job->time) +
                   " is not possible; use more than 0s, or leave it out for no limit");
    }
  }
  check_counts(field + ".perNamespace", limits.per_namespace, problems);
}

// An amount that is absent means no limit (nullopt).
sched::TresLimits tres_of(const std::optional<kube::ResourceAmounts>& amounts) {
  sched::TresLimits tres;
  if (!amounts) return tres;
  tres[sched::Tres::kCpu] = amounts->cpus;
  tres[sched::Tres::kNode] = amounts->nodes;
  tres[sched::Tres::kBilling] = amounts->billing;
  tres[sched::Tres::kGpu] = amounts->gpus;
  tres.of_gpu_type.insert(amounts->gpus_of_type.begin(), amounts->gpus_of_type.end());
  // Whole MiB, as Slurm counts memory; the limit is rounded down, never up.
  if (amounts->memory) tres[sched::Tres::kMemory] = whole_mib_of(*amounts->memory).value();
  return tres;
}

// Returns the part of the limits that QOS and accounts share, by Slurm's names: Grp...,
// Max...PerJob, MaxJobs.
template <typename Limits>
sched::Limits common_of(const Limits& limits) {
  sched::Limits out;
  if (limits.group) {
    out.group_tres = tres_of(limits.group->resources);
    out.group_jobs = limits.group->jobs;
    out.group_submit = limits.group->submitted_jobs;
    out.group_wall = limits.group->run_time;
  }
  if (limits.per_job) {
    out.job_tres = tres_of(limits.per_job->resources);
    out.node_tres = tres_of(limits.per_job->resources_per_node);
    out.job_wall = limits.per_job->time;
  }
  // A namespace is a user of Slurm's. Its resources are limited by QOS alone (translate).
  if (limits.per_namespace) {
    out.user_jobs = limits.per_namespace->jobs;
    // Jobs are counted from their creation on: those that wait, too (MaxSubmitJobsPerUser).
    out.user_submit = limits.per_namespace->submitted_jobs;
  }
  return out;
}

}  // namespace

// `field` is where they stand, for the sentences: "spec.limits".
void check_limits(const std::string& field, const std::optional<kube::QosLimits>& limits,
                  SpecProblems& problems) {
  if (!limits) return;
  check_common(field, *limits, problems);
  check_amounts(field + ".minPerJob", limits->min_per_job, problems);
  check_counts(field + ".perAccount", limits->per_account, problems);
  if (limits->per_namespace) {
    check_amounts(field + ".perNamespace.resources", limits->per_namespace->resources, problems);
  }
  if (limits->per_account) {
    check_amounts(field + ".perAccount.resources", limits->per_account->resources, problems);
  }
}

void check_limits(const std::string& field, const std::optional<kube::AccountLimits>& limits,
                  SpecProblems& problems) {
  if (limits) check_common(field, *limits, problems);
}

// A QOS has limits that accounts lack: per namespace and per account by resources, and a minimum.
sched::Limits translate(const std::optional<kube::QosLimits>& limits) {
  if (!limits) return {};
  sched::Limits out = common_of(*limits);
  out.min_tres = tres_of(limits->min_per_job);
  if (limits->per_namespace) out.user_tres = tres_of(limits->per_namespace->resources);
  if (limits->per_account) {
    out.account_tres = tres_of(limits->per_account->resources);
    out.account_jobs = limits->per_account->jobs;
    out.account_submit = limits->per_account->submitted_jobs;
  }
  return out;
}

sched::Limits translate(const std::optional<kube::AccountLimits>& limits) {
  return limits ? common_of(*limits) : sched::Limits{};
}

}  // namespace control
