// QOS (1.4).
#include "slurm/conf.h"

#include <algorithm>
#include <array>

#include "slurm/conf_actions.h"
#include "slurm/limit_actions.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"
#include "slurm/tres.h"

namespace slurm {
namespace {

using sched::Limits;
using sched::QosConfig;

// Flags that waive limits of partitions, or change whose limits count first (1.4).
base::Status qos_flags(QosConfig& q, std::string_view key, std::string_view value) {
  struct Flag {
    std::string_view name;
    bool QosConfig::*field;
  };
  constexpr std::array<Flag, 6> kFlags = {{{"DenyOnLimit", &QosConfig::deny_on_limit},
                                           {"PartitionMinNodes", &QosConfig::partition_min_nodes},
                                           {"PartitionMaxNodes", &QosConfig::partition_max_nodes},
                                           {"PartitionTimeLimit", &QosConfig::partition_time_limit},
                                           {"OverPartQOS", &QosConfig::over_part_qos},
                                           {"NoReserve", &QosConfig::no_reserve}}};
  for (const std::string& word : split(value, ',')) {
    const auto flag = std::find_if(kFlags.begin(), kFlags.end(),
                                   [&](const Flag& f) { return same_word(f.name, word); });
    if (flag == kFlags.end()) {
      return unknown_word(key, word,
                          {"DenyOnLimit", "PartitionMinNodes", "PartitionMaxNodes",
                           "PartitionTimeLimit", "OverPartQOS", "NoReserve"});
    }
    // Flags add up; there is none that switches another off.
    q.*(flag->field) = true;
  }
  return {};
}

// The QOS of the victim decides how it is preempted (1.4). Without a mode of its own the cluster's
// counts.
base::Status qos_preempt_mode(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<PreemptModes> modes = parse_preempt_modes(key, value);
  if (!modes) return modes.error();
  // GANG and OFF are the cluster's (C6).
  if (modes->gang || modes->mode == sched::PreemptMode::kOff) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": a QOS says CANCEL, REQUEUE or SUSPEND");
  }
  q.preempt_mode = modes->mode;
  q.preempt_within = modes->within;
  q.preempt_priority = modes->priority;
  return {};
}

// -1 is a value too: a QOS may switch the cluster's exempt time off for its jobs.
base::Status qos_exempt_time(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_time(key, value);
  if (!time) return time.error();
  q.preempt_exempt_time = time->value_or(base::Duration{0});
  return {};
}

// Reads thousandths; finer factors are cut off. The factor multiplies the usage that a job of this
// QOS is charged (R9.4): 0 makes it free.
base::Status usage_factor(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<std::int64_t> read = parse_millionths(key, value);
  if (!read) return read.error();
  q.usage_factor_milli = *read / 1000;
  return {};
}

// Makes an action on Limits one on the QOS that holds them, so that QOS, accounts and users share
// the actions of limit_actions.h.
template <auto action>
base::Status of_qos(QosConfig& q, std::string_view key, std::string_view value) {
  return action(q.limits, key, value);
}

// The key Preempt names the QOS that jobs of this one may preempt. The names are not checked here,
// because a listing may show a QOS before those that it names.
using QosKey = ConfKey<QosConfig>;
constexpr std::array kQosKeys = {
    QosKey{"Name", string_key<&QosConfig::name>},
    // Compared with the highest of all QOS it becomes a factor of a job's priority (R9.3).
    QosKey{"Priority",
           [](QosConfig& q, std::string_view key, std::string_view value) {
             return set_integer(q.priority, key, value, {.min = 0, .max = kUint32Max});
           }},
    QosKey{"Preempt",
           [](QosConfig& q, std::string_view, std::string_view value) {
             q.preempt = split(value, ',');
             return base::Status{};
           }},
    QosKey{"PreemptMode", qos_preempt_mode},
    QosKey{"PreemptExemptTime", qos_exempt_time},
    QosKey{"GraceTime", seconds_key<&QosConfig::grace_time>},
    QosKey{"Flags", qos_flags},
    QosKey{"UsageFactor", usage_factor},
    // Limits of all jobs of the QOS together, then of each job, each user and each account. Names
    // that share an action are the spellings of `sacctmgr modify` and of its listings.
    // Limits of all jobs of the QOS together.
    QosKey{"GrpTRES", of_qos<tres_limit<&Limits::group_tres>>},
    QosKey{"GrpJobs", of_qos<count_limit<&Limits::group_jobs>>},
    QosKey{"GrpSubmitJobs", of_qos<count_limit<&Limits::group_submit>>},
    QosKey{"GrpSubmit", of_qos<count_limit<&Limits::group_submit>>},
    QosKey{"GrpWall", of_qos<wall_limit<&Limits::group_wall>>},
    // Limits of each job.
    QosKey{"MaxTRESPerJob", of_qos<tres_limit<&Limits::job_tres>>},
    QosKey{"MaxTRES", of_qos<tres_limit<&Limits::job_tres>>},
    QosKey{"MaxTRESPJ", of_qos<tres_limit<&Limits::job_tres>>},
    QosKey{"MaxTRESPerNode", of_qos<tres_limit<&Limits::node_tres>>},
    QosKey{"MaxTRESPN", of_qos<tres_limit<&Limits::node_tres>>},
    QosKey{"MaxWallDurationPerJob", of_qos<wall_limit<&Limits::job_wall>>},
    QosKey{"MaxWall", of_qos<wall_limit<&Limits::job_wall>>},
    QosKey{"MaxWallPJ", of_qos<wall_limit<&Limits::job_wall>>},
    QosKey{"MinTRESPerJob", of_qos<tres_limit<&Limits::min_tres>>},
    QosKey{"MinTRES", of_qos<tres_limit<&Limits::min_tres>>},
    // Limits of the jobs of each user.
    QosKey{"MaxJobsPerUser", of_qos<count_limit<&Limits::user_jobs>>},
    QosKey{"MaxJobsPU", of_qos<count_limit<&Limits::user_jobs>>},
    QosKey{"MaxSubmitJobsPerUser", of_qos<count_limit<&Limits::user_submit>>},
    QosKey{"MaxSubmitJobsPU", of_qos<count_limit<&Limits::user_submit>>},
    QosKey{"MaxSubmitPU", of_qos<count_limit<&Limits::user_submit>>},
    QosKey{"MaxTRESPerUser", of_qos<tres_limit<&Limits::user_tres>>},
    QosKey{"MaxTRESPU", of_qos<tres_limit<&Limits::user_tres>>},
    // Limits of the jobs of each account.
    QosKey{"MaxJobsPerAccount", of_qos<count_limit<&Limits::account_jobs>>},
    QosKey{"MaxJobsPA", of_qos<count_limit<&Limits::account_jobs>>},
    QosKey{"MaxSubmitJobsPerAccount", of_qos<count_limit<&Limits::account_submit>>},
    QosKey{"MaxSubmitJobsPA", of_qos<count_limit<&Limits::account_submit>>},
    QosKey{"MaxSubmitPA", of_qos<count_limit<&Limits::account_submit>>},
    QosKey{"MaxTRESPerAccount", of_qos<tres_limit<&Limits::account_tres>>},
    QosKey{"MaxTRESPA", of_qos<tres_limit<&Limits::account_tres>>},
};

}  // namespace

// Names of keys are those of `sacctmgr modify` and those of its listings, which are shorter
// (MaxTRESPU).
base::Result<sched::QosConfig> read_qos_keys(std::span<const KeyValue> keys) {
  QosConfig qos;
  const base::Status status = apply_keys(qos, keys, kQosKeys, "a QOS");
  if (!status) return status.error();
  if (qos.name.empty()) return base::invalid_argument("QOS: its Name is missing");
  return qos;
}

}  // namespace slurm
