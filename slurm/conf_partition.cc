// PartitionName lines (1.2).
#include "slurm/conf.h"

#include <algorithm>
#include <array>

#include "slurm/conf_actions.h"
#include "slurm/hostlist.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"
#include "slurm/tres.h"

namespace slurm {
namespace {

using sched::PartitionConfig;

// 1.2.2: NO, YES[:n], FORCE[:n], EXCLUSIVE, with n = 4 by default. YES:1 shares with no job and is
// NO; FORCE:1 is kept apart, since it may be stacked by preemption. The number says how many jobs
// may be stacked on one resource.
base::Status over_subscribe(PartitionConfig& p, std::string_view key, std::string_view value) {
  const std::size_t colon = value.find(':');
  const std::string_view word = value.substr(0, colon);
  const base::Status status = choose(p.over_subscribe, key, word,
                                     {{"NO", sched::OverSubscribe::kNo},
                                      {"YES", sched::OverSubscribe::kYes},
                                      {"FORCE", sched::OverSubscribe::kForce},
                                      {"EXCLUSIVE", sched::OverSubscribe::kExclusive}});
  if (!status) return status;
  // SOURCE: slurm.conf.5, OverSubscribe: four jobs where no number is given.
  p.max_share = 4;
  if (colon != std::string_view::npos) {
    const bool counted = p.over_subscribe == sched::OverSubscribe::kYes ||
                         p.over_subscribe == sched::OverSubscribe::kForce;
    if (!counted) {
      return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                    ": only YES and FORCE take a number of jobs");
    }
    const base::Status count =
        set_integer(p.max_share, key, value.substr(colon + 1), {.min = 1, .max = 65'533});
    if (!count) return count;
  }
  if (p.over_subscribe == sched::OverSubscribe::kYes && p.max_share == 1) {
    p.over_subscribe = sched::OverSubscribe::kNo;  // YES:1 shares with no job (1.2.2)
    p.max_share = 4;
  }
  return {};
}

// Table 1.2.1 says which states take new jobs and which start jobs.
base::Status partition_state(PartitionConfig& p, std::string_view key, std::string_view value) {
  return choose(p.state, key, value,
                {{"UP", sched::PartitionState::kUp},
                 {"DOWN", sched::PartitionState::kDown},
                 {"DRAIN", sched::PartitionState::kDrain},
                 {"INACTIVE", sched::PartitionState::kInactive}});
}

// Unlike the cluster's, it may be OFF: then the partition's jobs are never preempted (C7). Without
// the key the cluster's mode counts.
base::Status partition_preempt_mode(PartitionConfig& p, std::string_view key,
                                    std::string_view value) {
  const base::Result<PreemptModes> modes = parse_preempt_modes(key, value);
  if (!modes) return modes.error();
  // GANG is the cluster's (C6).
  if (modes->gang) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": GANG is for the whole cluster, not for a partition");
  }
  if (modes->within) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": WITHIN is for the whole cluster or a QOS");
  }
  p.preempt_mode = modes->mode;
  p.preempt_priority = modes->priority;
  return {};
}

// `Priority=` of old configurations. Slurm still reads the key; a file that has PriorityTier as
// well is settled by the order of the keys.
base::Status legacy_priority(PartitionConfig& p, std::string_view key, std::string_view value) {
  const base::Status status =
      set_integer(p.priority_tier, key, value, {.min = 0, .max = kUint16Max});
  // Priority was the name of both before they were told apart.
  if (status) p.priority_job_factor = p.priority_tier;
  return status;
}

// One of its values takes the place of another: NO takes USER and NODE back. It shares a field with
// OverSubscribe=EXCLUSIVE, the older spelling of NODE, so a change must leave the other values of
// that field alone.
base::Status exclusive(PartitionConfig& p, std::string_view key, std::string_view value) {
  // Slurm ignores USER beside TOPO (C15).
  if (same_word(value, "USER,TOPO") || same_word(value, "TOPO,USER")) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": USER and TOPO exclude each other, and TOPO is not supported");
  }
  const bool node = same_word(value, "NODE");
  const bool user = same_word(value, "USER");
  if (!node && !user && !same_word(value, "NO")) {
    return unknown_word(key, value, {"NO", "NODE", "USER"});
  }
  p.exclusive_user = user;
  if (node) {
    p.over_subscribe = sched::OverSubscribe::kExclusive;
  } else if (p.over_subscribe == sched::OverSubscribe::kExclusive) {
    p.over_subscribe = sched::OverSubscribe::kNo;
  }
  return {};
}

// A list of names; ALL = no restriction.
template <std::optional<std::vector<std::string>> PartitionConfig::*field>
base::Status names_key(PartitionConfig& p, std::string_view, std::string_view value) {
  p.*field = std::nullopt;
  if (!same_word(value, "ALL")) p.*field = split(value, ',');
  return {};
}

// Reads a limit of time, UNLIMITED as no limit.
template <std::optional<base::Duration> PartitionConfig::*field>
base::Status limit_key(PartitionConfig& p, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> limit = parse_limit(key, value);
  if (!limit) return limit.error();
  p.*field = *limit;
  return {};
}

// The partition's field has nullopt for "the cluster's value". UNLIMITED must differ from that, so
// it is stored as a duration that no job reaches.
base::Status partition_over_time_limit(PartitionConfig& p, std::string_view key,
                                       std::string_view value) {
  const base::Status status = limit_key<&PartitionConfig::over_time_limit>(p, key, value);
  if (status && !p.over_time_limit) p.over_time_limit = kUnlimited;  // nothing = the cluster's
  return status;
}

// Reads a count that may be UNLIMITED or INFINITE; nullopt means no limit. The field is reset
// first, so that a DEFAULT line's number can be taken back.
template <std::optional<int> PartitionConfig::*field>
base::Status count_key(PartitionConfig& p, std::string_view key, std::string_view value) {
  p.*field = std::nullopt;
  if (same_word(value, "UNLIMITED") || same_word(value, "INFINITE")) return {};
  const base::Result<std::int64_t> read = parse_integer(key, value, {.min = 0});
  if (read) p.*field = static_cast<int>(*read);
  return read.status();
}

// One row for each key. AllowQos wins over DenyQos if both are given (1.2); the scheduler decides
// that.
using PartitionKey = ConfKey<PartitionConfig>;
constexpr std::array kPartitionKeys = {
    PartitionKey{"PartitionName", string_key<&PartitionConfig::name>},
    // Applied by read_partition_keys, which knows all nodes.
    PartitionKey{"Nodes", [](PartitionConfig&, std::string_view,
                             std::string_view) { return base::Status{}; }},
    // Jobs that name no partition go to the default one.
    PartitionKey{"Default", boolean_key<&PartitionConfig::is_default>},
    PartitionKey{"State", partition_state},
    // The tier decides which partition's jobs are tried first and which may preempt which; the job
    // factor is only one of the terms of a job's priority (R9.3, R9.5).
    PartitionKey{"PriorityTier",
                 [](PartitionConfig& p, std::string_view key, std::string_view value) {
                   return set_integer(p.priority_tier, key, value, {.min = 0, .max = kUint16Max});
                 }},
    PartitionKey{"PriorityJobFactor",
                 [](PartitionConfig& p, std::string_view key, std::string_view value) {
                   return set_integer(p.priority_job_factor, key, value,
                                      {.min = 0, .max = kUint16Max});
                 }},
    PartitionKey{"Priority", legacy_priority},
    PartitionKey{"OverSubscribe", over_subscribe},
    // The name of OverSubscribe before Slurm 16.05.
    PartitionKey{"Shared", over_subscribe},
    PartitionKey{"Exclusive", exclusive},
    PartitionKey{"ExclusiveUser", boolean_key<&PartitionConfig::exclusive_user>},
    PartitionKey{"PreemptMode", partition_preempt_mode},
    PartitionKey{"GraceTime", seconds_key<&PartitionConfig::grace_time>},
    PartitionKey{"DefMemPerCPU", default_memory_per_cpu<PartitionConfig>},
    PartitionKey{"DefMemPerNode", default_memory_per_node<PartitionConfig>},
    PartitionKey{"DefCpuPerGPU", default_cpus_per_gpu<PartitionConfig>},
    PartitionKey{"DefMemPerGPU", default_memory_per_gpu<PartitionConfig>},
    PartitionKey{"MaxMemPerCPU", max_memory_per_cpu<PartitionConfig>},
    PartitionKey{"MaxMemPerNode", max_memory_per_node<PartitionConfig>},
    PartitionKey{"MinNodes",
                 [](PartitionConfig& p, std::string_view key, std::string_view value) {
                   return set_integer(p.min_nodes, key, value, {.min = 0});
                 }},
    PartitionKey{"MaxNodes", count_key<&PartitionConfig::max_nodes>},
    PartitionKey{"MaxCPUsPerNode", count_key<&PartitionConfig::max_cpus_per_node>},
    // Whole minutes (1.7). A job without a time limit gets DefaultTime, or MaxTime if that is
    // unset.
    PartitionKey{"DefaultTime", limit_key<&PartitionConfig::default_time>},
    PartitionKey{"MaxTime", limit_key<&PartitionConfig::max_time>},
    PartitionKey{"OverTimeLimit", partition_over_time_limit},
    PartitionKey{"LLN", boolean_key<&PartitionConfig::least_loaded>},
    // Limits of this QOS hold for all jobs of the partition, and mostly come before those of the
    // job's own QOS (9.1).
    PartitionKey{"QOS", string_key<&PartitionConfig::qos>},
    PartitionKey{"TRESBillingWeights",
                 [](PartitionConfig& p, std::string_view key, std::string_view value) {
                   const base::Result<sched::TresWeights> read = parse_billing_weights(key, value);
                   if (read) p.billing_weights_micro = *read;
                   return read.status();
                 }},
    PartitionKey{"AllowQos", names_key<&PartitionConfig::allow_qos>},
    PartitionKey{"DenyQos", names_key<&PartitionConfig::deny_qos>},
};

}  // namespace

// Nodes comes last, because "ALL" is what it is without the key, too. Nodes= with an empty value is
// a partition without nodes, which is legal (1.2).
base::Result<sched::PartitionConfig> read_partition_keys(std::span<const KeyValue> keys,
                                                         std::span<const std::string> all_nodes) {
  PartitionConfig partition;
  base::Status status = apply_keys(partition, keys, kPartitionKeys, "a partition");
  if (!status) return status.error();
  if (partition.name.empty()) return base::invalid_argument("PartitionName: is missing");
  std::string_view nodes = "ALL";
  // The last one counts, as everywhere: a DEFAULT line may have set another.
  for (const KeyValue& key : keys) {
    if (same_word(key.key, "Nodes")) nodes = key.value;
  }
  if (same_word(nodes, "ALL")) {
    partition.nodes.assign(all_nodes.begin(), all_nodes.end());
    return partition;
  }
  base::Result<std::vector<std::string>> names = expand_node_list(nodes);
  if (!names) return names.error().with_context("partition " + partition.name + ": Nodes");
  partition.nodes = std::move(names).value();
  return partition;
}

}  // namespace slurm
