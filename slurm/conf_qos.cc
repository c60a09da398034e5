// QOS (1.4).
#include "slurm/conf.h"

#include <algorithm>
#include <array>

#include "slurm/conf_actions.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"

namespace slurm {
namespace {

using sched::QosConfig;

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
    q.*(flag->field) = true;
  }
  return {};
}

// "cpu=8" or "node=2": one kind of resource per key is known.
template <std::optional<int> QosConfig::*field>
base::Status tres_limit(QosConfig& q, std::string_view key, std::string_view value,
                        std::string_view resource) {
  const auto [name, count] = split_option(value);
  if (!same_word(name, resource)) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) + ": only " +
                                  std::string{resource} + "=N is supported");
  }
  const base::Result<std::int64_t> read = parse_integer(key, count, {.min = 0});
  if (read) q.*field = static_cast<int>(*read);
  return read.status();
}

base::Status qos_preempt_mode(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<PreemptModes> modes = parse_preempt_modes(key, value);
  if (!modes) return modes.error();
  if (modes->gang || modes->mode == sched::PreemptMode::kOff) {  // C6
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": a QOS says CANCEL, REQUEUE or SUSPEND");
  }
  q.preempt_mode = modes->mode;
  q.preempt_within = modes->within;
  q.preempt_priority = modes->priority;
  return {};
}

base::Status qos_exempt_time(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_time(key, value);
  if (!time) return time.error();
  q.preempt_exempt_time = time->value_or(base::Duration{0});
  return {};
}

base::Status qos_max_wall(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_limit(key, value);
  if (!time) return time.error();
  q.max_time = *time;
  return {};
}

base::Status qos_max_jobs(QosConfig& q, std::string_view key, std::string_view value) {
  const base::Result<std::int64_t> read = parse_integer(key, value, {.min = 0});
  if (read) q.max_jobs_per_user = static_cast<int>(*read);
  return read.status();
}

base::Status max_cpus_per_user(QosConfig& q, std::string_view key, std::string_view value) {
  return tres_limit<&QosConfig::max_cpus_per_user>(q, key, value, "cpu");
}
base::Status max_nodes_per_job(QosConfig& q, std::string_view key, std::string_view value) {
  return tres_limit<&QosConfig::max_nodes_per_job>(q, key, value, "node");
}
base::Status group_cpus(QosConfig& q, std::string_view key, std::string_view value) {
  return tres_limit<&QosConfig::group_cpus>(q, key, value, "cpu");
}

using QosKey = ConfKey<QosConfig>;
constexpr std::array kQosKeys = {
    QosKey{"Name", string_key<&QosConfig::name>},
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
    QosKey{"MaxJobsPerUser", qos_max_jobs},
    QosKey{"MaxJobsPU", qos_max_jobs},
    QosKey{"MaxTRESPerUser", max_cpus_per_user},
    QosKey{"MaxTRESPU", max_cpus_per_user},
    QosKey{"MaxTRESPerJob", max_nodes_per_job},
    QosKey{"MaxTRES", max_nodes_per_job},
    QosKey{"GrpTRES", group_cpus},
    QosKey{"MaxWall", qos_max_wall},
};

}  // namespace

base::Result<sched::QosConfig> read_qos_keys(std::span<const KeyValue> keys) {
  QosConfig qos;
  const base::Status status = apply_keys(qos, keys, kQosKeys, "a QOS");
  if (!status) return status.error();
  if (qos.name.empty()) return base::invalid_argument("QOS: its Name is missing");
  return qos;
}

}  // namespace slurm
