// Cluster-wide keys (1.1).
#include "slurm/conf.h"

#include <algorithm>
#include <array>

#include "slurm/array.h"
#include "slurm/conf_actions.h"
#include "slurm/conf_backfill.h"
#include "slurm/conf_priority.h"
#include "slurm/licenses.h"
#include "slurm/limits.h"
#include "slurm/quantities.h"

namespace slurm {
namespace {

using sched::ClusterParameters;

// Whole nodes (linear) and parts of nodes (cons_tres). select/cons_res is what cons_tres succeeded:
// it takes the same parameters and gives the same CPUs and memory.
base::Status select_type(ClusterParameters& c, std::string_view key, std::string_view value) {
  return choose(c.select, key, value,
                {{"select/linear", sched::SelectType::kLinear},
                 {"select/cons_tres", sched::SelectType::kConsTres},
                 {"select/cons_res", sched::SelectType::kConsTres}});
}

// Only the main pass starts jobs with sched/builtin, in the order of the queue; with sched/backfill
// jobs behind may start if they delay none before them (chapter 8).
base::Status scheduler_type(ClusterParameters& c, std::string_view key, std::string_view value) {
  return choose(c.scheduler, key, value,
                {{"sched/builtin", sched::SchedulerType::kBuiltin},
                 {"sched/backfill", sched::SchedulerType::kBackfill}});
}

// The type says which jobs may be preempted by which: by the tiers of their partitions, or by their
// QOS. Whether it goes with the cluster's PreemptMode (C2, C3) is checked by the scheduler once all
// keys are read.
base::Status preempt_type(ClusterParameters& c, std::string_view key, std::string_view value) {
  return choose(c.preempt_type, key, value,
                {{"preempt/none", sched::PreemptType::kNone},
                 {"preempt/partition_prio", sched::PreemptType::kPartitionPriority},
                 {"preempt/qos", sched::PreemptType::kQos}});
}

// YES is the old spelling of ALL. With NO a job that breaks a partition's limits is accepted and
// waits.
base::Status enforce_part_limits(ClusterParameters& c, std::string_view key,
                                 std::string_view value) {
  return choose(c.enforce_part_limits, key, value,
                {{"NO", sched::EnforcePartLimits::kNone},
                 {"ANY", sched::EnforcePartLimits::kAny},
                 {"ALL", sched::EnforcePartLimits::kAll},
                 {"YES", sched::EnforcePartLimits::kAll}});
}

// PreemptMode of the cluster carries four things: how victims are preempted, whether jobs take
// turns (GANG), and the two conditions of 7.2.
base::Status preempt_mode(ClusterParameters& c, std::string_view key, std::string_view value) {
  const base::Result<PreemptModes> modes = parse_preempt_modes(key, value);
  if (!modes) return modes.error();
  c.preempt_mode = modes->mode.value_or(sched::PreemptMode::kOff);
  c.gang = modes->gang;
  c.preempt_within = modes->within;
  c.preempt_priority = modes->priority;
  return {};
}

// Reads one option of PreemptParameters (1.1.1). Called for the old spellings in
// SchedulerParameters, too, with `key` naming the place that the user wrote.
base::Status preempt_parameter(ClusterParameters& c, std::string_view key,
                               std::string_view option) {
  const auto [name, value] = split_option(option);
  sched::PreemptParameters& preempt = c.preempt;
  if (same_word(name, "strict_order")) return set_flag(preempt.strict_order, key, option, value);
  if (same_word(name, "youngest_first")) {
    return set_flag(preempt.youngest_first, key, option, value);
  }
  if (same_word(name, "reclaim_licenses")) {
    return set_flag(preempt.reclaim_licenses, key, option, value);
  }
  if (same_word(name, "send_user_signal")) {
    return not_supported(std::string{key} + " " + std::string{name});
  }
  const std::string what = std::string{key} + " " + std::string{name};
  if (same_word(name, "suspend_grace_time")) {  // between two signals on the node: decides nothing
    base::Duration none{};
    return set_seconds(none, what, value);
  }
  if (same_word(name, "reorder_count")) {
    return set_integer(preempt.reorder_count, what, value, {.min = 0, .max = 1'000});
  }
  if (same_word(name, "min_exempt_priority")) {
    const base::Result<std::int64_t> read =
        parse_integer(what, value, {.min = 0, .max = kUint32Max});
    if (!read) return read.error();
    preempt.min_exempt_priority = sched::Priority{static_cast<std::uint32_t>(*read)};
    return {};
  }
  return unknown_word(key, name,
                      {"min_exempt_priority", "reclaim_licenses", "reorder_count", "strict_order",
                       "youngest_first"});
}

// Returns the words of a list. Slurm looks for each that it knows anywhere in the text, so what
// real files have besides changes nothing: empty words, and a second "="
// ("SchedulerParameters==defer").
std::vector<std::string> words_of(std::string_view value) {
  std::vector<std::string> words = split(value, ',');
  for (std::string& word : words) word.erase(0, word.find_first_not_of('='));
  std::erase(words, "");
  return words;
}

base::Status preempt_parameters(ClusterParameters& c, std::string_view key,
                                std::string_view value) {
  for (const std::string& option : words_of(value)) {
    const base::Status status = preempt_parameter(c, key, option);
    if (!status) return status;
  }
  return {};
}

// Options that only throttle Slurm's own threads; kubegang's scheduler decides without them.
constexpr std::array<std::string_view, 6> kThrottles = {"batch_sched_delay",  "build_queue_timeout",
                                                        "max_rpc_cnt",        "max_sched_time",
                                                        "sched_min_interval", "salloc_wait_nodes"};

// Options of slurm.conf(5) that decide which job starts, or how, and are missing here.
constexpr std::array<std::string_view, 32> kMissing = {"allow_zero_lic",
                                                       "assoc_limit_continue",
                                                       "assoc_limit_stop",
                                                       "bb_array_stage_cnt",
                                                       "default_gbytes",
                                                       "defer_batch",
                                                       "delay_boot",
                                                       "disable_hetjob_steps",
                                                       "disable_job_shrink",
                                                       "enable_hetjob_steps",
                                                       "enable_user_top",
                                                       "extra_constraints",
                                                       "Ignore_NUMA",
                                                       "ignore_prefer_validation",
                                                       "max_array_tasks",
                                                       "max_depend_depth",
                                                       "max_script_size",
                                                       "max_submit_line_size",
                                                       "max_switch_wait",
                                                       "no_backup_scheduling",
                                                       "no_env_cache",
                                                       "nohold_on_prolog_fail",
                                                       "pack_serial_at_end",
                                                       "permit_job_expansion",
                                                       "reduce_completing_frag",
                                                       "requeue_on_resume_failure",
                                                       "spec_cores_first",
                                                       "step_retry_count",
                                                       "step_retry_time",
                                                       "time_min_as_soft_limit",
                                                       "topo_optional",
                                                       "whole_hetjob"};

// Reads one option: an old spelling of PreemptParameters, a throttle, an option of the queue, or,
// with "bf_" in front, an option of backfill. Unknown ones are refused and not ignored: an
// administrator who moves a configuration here must learn about every option that has no effect.
base::Status scheduler_parameter(ClusterParameters& c, std::string_view key,
                                 std::string_view option) {
  const auto [name, value] = split_option(option);
  constexpr std::string_view kPreempt = "preempt_";  // old spellings of PreemptParameters (1.1.1)
  if (same_word(name.substr(0, kPreempt.size()), kPreempt)) {
    return preempt_parameter(c, key, option.substr(kPreempt.size()));
  }
  for (const std::string_view throttle : kThrottles) {
    if (same_word(name, throttle)) return {};
  }
  const std::string what = std::string{key} + " " + std::string{name};
  for (const std::string_view missing : kMissing) {
    if (same_word(name, missing)) return not_supported(what);
  }
  sched::QueueParameters& queue = c.queue;
  if (same_word(name, "defer")) return set_flag(queue.defer, key, option, value);
  if (same_word(name, "default_queue_depth")) {
    return set_integer(queue.default_queue_depth, what, value, {.min = 0});
  }
  if (same_word(name, "partition_job_depth")) {
    return set_integer(queue.partition_job_depth, what, value, {.min = 0});
  }
  if (same_word(name, "sched_max_job_start")) {
    return set_integer(queue.max_job_start, what, value, {.min = 0});
  }
  // -1 switches the periodic pass off, and set_seconds would refuse it as negative.
  if (same_word(name, "sched_interval") && value == "-1") {
    queue.sched_interval = std::chrono::seconds{-1};
    return {};
  }
  if (same_word(name, "sched_interval")) return set_seconds(queue.sched_interval, what, value);
  // The place before there was DependencyParameters.
  if (same_word(name, "kill_invalid_depend")) {
    return set_flag(c.kill_invalid_depend, key, option, value);
  }
  if (same_word(name, "requeue_delay")) return set_seconds(queue.requeue_delay, what, value);
  if (same_word(name.substr(0, 3), "bf_")) return read_backfill_option(c.backfill, key, option);
  if (same_word(name, "max_job_bf")) {  // its name before Slurm 15.08
    return read_backfill_option(c.backfill, key, "bf_max_job_test=" + std::string{value});
  }
  return unknown_word(
      key, name,
      {"bf_interval", "default_queue_depth", "defer", "partition_job_depth", "kill_invalid_depend",
       "preempt_reorder_count", "preempt_strict_order", "preempt_youngest_first", "requeue_delay",
       "sched_interval", "sched_max_job_start"});
}

base::Status dependency_parameters(ClusterParameters& c, std::string_view key,
                                   std::string_view value) {
  for (const std::string& option : split(value, ',')) {
    const auto [name, given] = split_option(option);
    for (const std::string_view missing : {"disable_remote_singleton", "max_depend_depth"}) {
      if (same_word(name, missing))
        return not_supported(std::string{key} + " " + std::string{name});
    }
    if (!same_word(name, "kill_invalid_depend")) {
      return unknown_word(key, name, {"kill_invalid_depend"});
    }
    const base::Status status = set_flag(c.kill_invalid_depend, key, option, given);
    if (!status) return status;
  }
  return {};
}

// Later options of the list overwrite earlier ones.
base::Status scheduler_parameters(ClusterParameters& c, std::string_view key,
                                  std::string_view value) {
  for (const std::string& option : words_of(value)) {
    const base::Status status = scheduler_parameter(c, key, option);
    if (!status) return status;
  }
  return {};
}

// Reads seconds. A slice must also be much longer than the grace time of a suspension, which is the
// node's matter (2.3).
base::Status time_slice(ClusterParameters& c, std::string_view key, std::string_view value) {
  base::Duration slice{};
  const base::Status status = set_seconds(slice, key, value);
  if (!status) return status;
  // Slurm takes its default for a slice below 5 s (C18); here it is refused.
  if (slice < std::chrono::seconds{5} || slice > std::chrono::seconds{kUint16Max}) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(value) +
                                  ": must be from 5 to 65533 seconds");
  }
  c.time_slice = slice;
  return {};
}

// Reads how long a job runs at least before it may be preempted. Exact to the second: unlike time
// limits it is not rounded up to minutes (1.7).
base::Status exempt_time(ClusterParameters& c, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_time(key, value);
  if (!time) return time.error();
  c.preempt_exempt_time = *time;  // -1 = disabled
  return {};
}

// Reads whole minutes, beyond the time limit. nullopt is UNLIMITED: jobs are not ended for their
// limits.
base::Status over_time_limit(ClusterParameters& c, std::string_view key, std::string_view value) {
  const base::Result<std::optional<base::Duration>> time = parse_limit(key, value);
  if (!time) return time.error();
  c.over_time_limit = *time;
  return {};
}

// The gang counts CPUs with task/none and CR_CPU; with any plugin that binds tasks it compares
// cores (6.2). Which of the binding plugins it is makes no difference to the scheduler, so all
// other words are taken for one.
base::Status task_plugin(ClusterParameters& c, std::string_view, std::string_view value) {
  c.task_affinity = !same_word(value, "task/none");
  return {};
}

// A license of which there are none is one that no job can have.
base::Status licenses(ClusterParameters& c, std::string_view key, std::string_view value) {
  base::Result<sched::Licenses> read = parse_licenses(key, value);
  if (!read) return read.error();
  c.licenses = std::move(read).value();
  return {};
}

using ClusterKey = ConfKey<ClusterParameters>;
// One row for each key of the cluster that is not a key of priorities. The actions run in the order
// of the file; SelectTypeParameters, whose default depends on SelectType, is applied after all
// others.
constexpr std::array kClusterKeys = {
    ClusterKey{"SelectType", select_type},
    // Applied by read_cluster_keys, once SelectType is known.
    ClusterKey{"SelectTypeParameters", [](ClusterParameters&, std::string_view,
                                          std::string_view) { return base::Status{}; }},
    ClusterKey{"PreemptType", preempt_type},
    ClusterKey{"PreemptMode", preempt_mode},
    ClusterKey{"PreemptParameters", preempt_parameters},
    ClusterKey{"PreemptExemptTime", exempt_time},
    ClusterKey{"SchedulerType", scheduler_type},
    ClusterKey{"SchedulerParameters", scheduler_parameters},
    ClusterKey{"DependencyParameters", dependency_parameters},
    ClusterKey{"SchedulerTimeSlice", time_slice},
    ClusterKey{"TaskPlugin", task_plugin},
    // KillWait lies between SIGTERM and SIGKILL. Together with MessageTimeout it is how long a
    // preemptor waits before it calls for the same victims again (7.7).
    ClusterKey{"KillWait", seconds_key<&ClusterParameters::kill_wait>},
    ClusterKey{"CompleteWait",
               [](ClusterParameters& c, std::string_view key, std::string_view value) {
                 return set_seconds(c.queue.complete_wait, std::string{key}, value);
               }},
    ClusterKey{"MessageTimeout", seconds_key<&ClusterParameters::message_timeout>},
    ClusterKey{"JobRequeue", boolean_key<&ClusterParameters::requeue_default>},
    ClusterKey{"MaxBatchRequeue",
               [](ClusterParameters& c, std::string_view key, std::string_view value) {
                 return set_integer(c.queue.max_batch_requeue, key, value, {.min = 0});
               }},
    ClusterKey{"MaxArraySize",
               [](ClusterParameters& c, std::string_view key, std::string_view value) {
                 return set_integer(c.max_array_size, key, value,
                                    {.min = 0, .max = kArrayTasksEnd});
               }},
    ClusterKey{"OverTimeLimit", over_time_limit},
    ClusterKey{"EnforcePartLimits", enforce_part_limits},
    ClusterKey{"DefMemPerCPU", default_memory_per_cpu<ClusterParameters>},
    ClusterKey{"DefMemPerNode", default_memory_per_node<ClusterParameters>},
    ClusterKey{"DefCpuPerGPU", default_cpus_per_gpu<ClusterParameters>},
    ClusterKey{"DefMemPerGPU", default_memory_per_gpu<ClusterParameters>},
    ClusterKey{"MaxMemPerCPU", max_memory_per_cpu<ClusterParameters>},
    ClusterKey{"MaxMemPerNode", max_memory_per_node<ClusterParameters>},
    ClusterKey{"Licenses", licenses},
    // Features that are not there: only the value that switches one off is accepted.
    ClusterKey{"TopologyPlugin", absent_feature<ClusterParameters>},
    ClusterKey{"GresTypes", ignored<ClusterParameters>},  // what nodes have says it all
    ClusterKey{"MCSPlugin", absent_feature<ClusterParameters>},
    ClusterKey{"MCSParameters", absent_feature<ClusterParameters>},
    ClusterKey{"BurstBufferType", absent_feature<ClusterParameters>},
};

// The words of SelectTypeParameters that name the unit in which nodes are given away (1.1).
// `memory`: jobs are charged memory, too, and wait for it.
struct UnitWord {
  std::string_view name;
  sched::SelectUnit unit;
  bool memory;
};
constexpr std::array<UnitWord, 6> kUnitWords = {
    {{"CR_CPU", sched::SelectUnit::kCpu, false},
     {"CR_CPU_Memory", sched::SelectUnit::kCpu, true},
     {"CR_Core", sched::SelectUnit::kCore, false},
     {"CR_Core_Memory", sched::SelectUnit::kCore, true},
     {"CR_Socket", sched::SelectUnit::kSocket, false},
     {"CR_Socket_Memory", sched::SelectUnit::kSocket, true}}};
// Words that stand beside a unit, or alone with linear, and switch something on.
struct FlagWord {
  std::string_view name;
  bool ClusterParameters::*field;
};
constexpr std::array<FlagWord, 4> kFlagWords = {
    {{"CR_Memory", &ClusterParameters::memory},
     {"CR_LLN", &ClusterParameters::least_loaded},
     {"CR_ONE_TASK_PER_CORE", &ClusterParameters::one_task_per_core},
     {"CR_CORE_DEFAULT_DIST_BLOCK", &ClusterParameters::core_default_dist_block}}};

// A word of Slurm's that this scheduler does not support gets another message than a misspelling.
base::Status unknown_select_parameter(std::string_view key, std::string_view word) {
  if (same_word(word, "CR_Pack_Nodes")) return not_supported(std::string{key} + " CR_Pack_Nodes");
  std::vector<std::string_view> allowed;
  for (const UnitWord& unit : kUnitWords) allowed.push_back(unit.name);
  for (const FlagWord& flag : kFlagWords) allowed.push_back(flag.name);
  return unknown_word(key, word, allowed);
}

// 1.1: cons_tres must have exactly one unit (Slurm's start-up is fatal otherwise); linear has none,
// because it gives whole nodes. Memory is managed only if a word says so. A word that was given
// before keeps its effect: there are no words that switch something off.
base::Status select_parameters(ClusterParameters& c, std::string_view value) {
  const std::string key = "SelectTypeParameters";
  const auto wrong = [&](const std::string& what) {
    return base::invalid_argument(key + " " + in_quotes(value) + ": " + what);
  };
  c.memory = false;
  bool unit_given = false;
  for (const std::string& word : split(value, ',')) {
    const auto named = [&](const auto& row) { return same_word(row.name, word); };
    const auto unit = std::find_if(kUnitWords.begin(), kUnitWords.end(), named);
    const auto flag = std::find_if(kFlagWords.begin(), kFlagWords.end(), named);
    // CR_CPU, CR_Core or CR_Socket: the resource unit, at most once.
    if (unit != kUnitWords.end()) {
      if (c.select == sched::SelectType::kLinear) {
        return wrong("select/linear gives whole nodes; it knows CR_Memory alone");
      }
      if (unit_given) return wrong("say one of CR_CPU, CR_Core and CR_Socket");
      unit_given = true;
      c.unit = unit->unit;
      c.memory = c.memory || unit->memory;
    } else if (flag != kFlagWords.end()) {
      c.*(flag->field) = true;
    } else {
      return unknown_select_parameter(key, word);
    }
  }
  if (c.select == sched::SelectType::kConsTres && !unit_given) {
    return wrong("select/cons_tres needs one of CR_CPU, CR_Core and CR_Socket");
  }
  if (c.one_task_per_core && c.unit == sched::SelectUnit::kCpu) {
    return wrong("CR_ONE_TASK_PER_CORE does not go with CR_CPU");
  }
  return {};
}

}  // namespace

// 1. The keys of priorities have their own table, and all others the one above.
// 2. SelectTypeParameters comes last, when SelectType is known, because its default depends on
//    that: CR_Core_Memory for cons_tres, nothing for linear.
//
// No key is required. Whether the values fit each other is only checked where one reader sees both
// sides; the scheduler checks the rest (1.6).
base::Result<sched::ClusterParameters> read_cluster_keys(std::span<const KeyValue> keys) {
  sched::ClusterParameters cluster;
  cluster.task_affinity = false;  // Slurm's default: task/none
  std::vector<KeyValue> of_priority;
  std::vector<KeyValue> others;
  for (const KeyValue& key : keys) {
    (is_priority_key(key.key) ? of_priority : others).push_back(key);
  }
  base::Status status = read_priority_keys(cluster.priority, of_priority);
  if (status) status = apply_keys(cluster, others, kClusterKeys, "slurm.conf");
  if (!status) return status.error();
  std::string_view parameters =
      cluster.select == sched::SelectType::kLinear ? "" : "CR_Core_Memory";
  for (const KeyValue& key : keys) {
    if (same_word(key.key, "SelectTypeParameters")) parameters = key.value;
  }
  const base::Status selected = select_parameters(cluster, parameters);
  if (!selected) return selected.error();
  return cluster;
}

}  // namespace slurm
