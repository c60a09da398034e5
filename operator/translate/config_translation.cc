#include "operator/translate/config_translation.h"

#include <algorithm>
#include <optional>

#include "base/natural_order.h"
#include "kube/api/time_format.h"
#include "operator/translate/units.h"
#include "scheduler/model/cluster.h"
#include "slurm/hostlist.h"

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::Duration kSliceMin = milliseconds{100};
constexpr base::Duration kSliceMax = seconds{65'533};
constexpr std::int64_t kTierMax = 65'533;
constexpr std::int64_t kShareMax = 1'024;
constexpr std::size_t kLabelValueMax = 63;

// Collects the problems of one object.
class Problems {
 public:
  void add(std::string sentence) { sentences_.push_back(std::move(sentence)); }

  template <typename T>
  void range(std::string_view field, const std::optional<T>& value, std::int64_t min,
             std::int64_t max) {
    if (!value || (*value >= min && *value <= max)) return;
    add(std::string{field} + ": " + std::to_string(*value) + " is out of range; use " +
        std::to_string(min) + " to " + std::to_string(max));
  }
  void range(std::string_view field, const std::optional<base::Duration>& value, base::Duration min,
             base::Duration max) {
    if (!value || (*value >= min && *value <= max)) return;
    add(std::string{field} + ": " + kube::format_duration(*value) + " is out of range; use " +
        kube::format_duration(min) + " to " + kube::format_duration(max));
  }
  void not_negative(std::string_view field, const std::optional<base::Duration>& value) {
    if (!value || value->count() >= 0) return;
    add(std::string{field} + ": " + kube::format_duration(*value) + " is negative; use 0s or more");
  }
  // It is the value of a label.
  void name(const std::string& name) {
    if (name.size() <= kLabelValueMax) return;
    add("metadata.name: \"" + name + "\" has " + std::to_string(name.size()) +
        " characters, at most " + std::to_string(kLabelValueMax) +
        " are possible; create it under a shorter name");
  }
  void memory(std::string_view field, const std::optional<kube::MemoryLimits>& limits) {
    if (!limits) return;
    // C16: at one level, one form of a default and of a maximum.
    if (limits->default_per_cpu && limits->default_per_node) {
      add(std::string{field} + ": defaultPerCPU and defaultPerNode exclude each other; remove one");
    }
    if (limits->max_per_cpu && limits->max_per_node) {
      add(std::string{field} + ": maxPerCPU and maxPerNode exclude each other; remove one");
    }
    for (const auto& value : {limits->default_per_cpu, limits->default_per_node,
                              limits->max_per_cpu, limits->max_per_node}) {
      if (value && value->value() <= 0) {
        add(std::string{field} + ": " + kube::format_bytes(*value) +
            " is not possible; use more than 0, or leave it out for none");
      }
    }
  }
  // C5: at the cluster's level these exclude gang; a QOS or a partition may have them beside it.
  void conditions(const kube::SchedulerConfigSpec& spec) {
    const bool gang = spec.gang.value_or(true);
    const bool by_qos = spec.preempt_type == kube::PreemptType::kQos;
    const bool within = spec.preempt_within.value_or(false);
    for (const auto& [set, field] :
         {std::pair{within, "spec.preemptWithin"},
          std::pair{spec.preempt_priority.value_or(false), "spec.preemptPriority"}}) {
      if (!set || !gang) continue;
      add(std::string{field} +
          ": is not possible with gang: true; set gang to false, or set it in a Partition or "
          "QOS");
    }
    if (within && !by_qos) {
      add("spec.preemptWithin: is about jobs of one QOS; set preemptType to QOS or remove it");
    }
  }
  std::vector<std::string> take() { return std::move(sentences_); }

 private:
  std::vector<std::string> sentences_;
};

sched::PreemptMode translate(kube::PreemptMode mode) {
  switch (mode) {
    case kube::PreemptMode::kDisabled:
      return sched::PreemptMode::kOff;
    case kube::PreemptMode::kCancel:
      return sched::PreemptMode::kCancel;
    case kube::PreemptMode::kRequeue:
      return sched::PreemptMode::kRequeue;
    case kube::PreemptMode::kSuspend:
      return sched::PreemptMode::kSuspend;
  }
  return sched::PreemptMode::kOff;
}

std::optional<sched::PreemptMode> translate(const std::optional<kube::PreemptMode>& mode) {
  return mode ? std::optional{translate(*mode)} : std::nullopt;
}

std::optional<sched::MemoryMiB> memory_of(const std::optional<kube::Bytes>& bytes) {
  return bytes ? std::optional{mib_of(*bytes)} : std::nullopt;
}

void translate_memory(const std::optional<kube::MemoryLimits>& limits, sched::MemoryLimit& defaults,
                      sched::MemoryLimit& maxima) {
  if (!limits) return;
  defaults = {memory_of(limits->default_per_cpu), memory_of(limits->default_per_node)};
  maxima = {memory_of(limits->max_per_cpu), memory_of(limits->max_per_node)};
}

void translate_select(const kube::SelectConfig& select, sched::ClusterParameters& cluster) {
  cluster.select = select.type == kube::SelectType::kLinear ? sched::SelectType::kLinear
                                                            : sched::SelectType::kConsTres;
  switch (select.unit.value_or(kube::SelectUnit::kCore)) {
    case kube::SelectUnit::kCpu:
      cluster.unit = sched::SelectUnit::kCpu;
      break;
    case kube::SelectUnit::kCore:
      cluster.unit = sched::SelectUnit::kCore;
      break;
    case kube::SelectUnit::kSocket:
      cluster.unit = sched::SelectUnit::kSocket;
      break;
  }
  cluster.memory = select.memory.value_or(true);
  cluster.task_affinity = select.task_affinity.value_or(true);
  cluster.least_loaded = select.least_loaded.value_or(false);
  cluster.one_task_per_core = select.one_task_per_core.value_or(false);
  cluster.core_default_dist_block = select.block_distribution.value_or(false);
}

sched::PreemptType translate(kube::PreemptType type) {
  switch (type) {
    case kube::PreemptType::kNone:
      return sched::PreemptType::kNone;
    case kube::PreemptType::kPartitionPriority:
      return sched::PreemptType::kPartitionPriority;
    case kube::PreemptType::kQos:
      return sched::PreemptType::kQos;
  }
  return sched::PreemptType::kNone;
}

// Absent: Suspend with gang, Cancel without, Disabled under preemptType None (api.md).
sched::PreemptMode default_preempt_mode(const sched::ClusterParameters& cluster) {
  if (cluster.preempt_type == sched::PreemptType::kNone) return sched::PreemptMode::kOff;
  return cluster.gang ? sched::PreemptMode::kSuspend : sched::PreemptMode::kCancel;
}

sched::EnforcePartLimits translate(kube::EnforcePartitionLimits limits) {
  switch (limits) {
    case kube::EnforcePartitionLimits::kNone:
      return sched::EnforcePartLimits::kNone;
    case kube::EnforcePartitionLimits::kAny:
      return sched::EnforcePartLimits::kAny;
    case kube::EnforcePartitionLimits::kAll:
      return sched::EnforcePartLimits::kAll;
  }
  return sched::EnforcePartLimits::kNone;
}

void translate_queue(const kube::SchedulerConfigSpec& spec, sched::ClusterParameters& cluster) {
  if (spec.requeue) {
    cluster.requeue_default = spec.requeue->by_default.value_or(true);
    cluster.queue.requeue_delay = spec.requeue->delay.value_or(cluster.queue.requeue_delay);
    cluster.queue.max_batch_requeue =
        spec.requeue->max_batch.value_or(cluster.queue.max_batch_requeue);
  }
}

sched::PartitionState translate(kube::PartitionState state) {
  switch (state) {
    case kube::PartitionState::kUp:
      return sched::PartitionState::kUp;
    case kube::PartitionState::kDown:
      return sched::PartitionState::kDown;
    case kube::PartitionState::kDrain:
      return sched::PartitionState::kDrain;
    case kube::PartitionState::kInactive:
      return sched::PartitionState::kInactive;
  }
  return sched::PartitionState::kUp;
}

sched::OverSubscribe translate(kube::OverSubscribePolicy policy) {
  switch (policy) {
    case kube::OverSubscribePolicy::kNever:
      return sched::OverSubscribe::kNo;
    case kube::OverSubscribePolicy::kOnRequest:
      return sched::OverSubscribe::kYes;
    case kube::OverSubscribePolicy::kForce:
      return sched::OverSubscribe::kForce;
    case kube::OverSubscribePolicy::kExclusive:
      return sched::OverSubscribe::kExclusive;
  }
  return sched::OverSubscribe::kNo;
}

std::vector<std::string> nodes_of(const kube::PartitionNodes& nodes,
                                  std::span<const kube::Node* const> existing) {
  if (nodes.hostlist) {
    auto names = slurm::expand_hostlist(*nodes.hostlist).value();
    std::sort(names.begin(), names.end(), base::natural_less);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  std::vector<std::string> names;
  for (const kube::Node* node : existing) {
    if (nodes.selector && kube::matches(*nodes.selector, node->metadata.labels)) {
      names.push_back(node->metadata.name);
    }
  }
  std::sort(names.begin(), names.end(), base::natural_less);
  return names;
}

}  // namespace

std::vector<std::string> check_config(const kube::SchedulerConfig& config) {
  Problems problems;
  const kube::SchedulerConfigSpec& spec = config.spec;
  if (config.metadata.name != kube::kSchedulerConfigName) {
    problems.add("metadata.name: \"" + config.metadata.name +
                 "\" is ignored, the one SchedulerConfig that counts is named \"" +
                 std::string{kube::kSchedulerConfigName} + "\"; create that one");
  }
  problems.range("spec.timeSlice", spec.time_slice, kSliceMin, kSliceMax);
  problems.range("spec.killWait", spec.kill_wait, base::Duration{0}, seconds{65'533});
  problems.not_negative("spec.preemptExemptTime", spec.preempt_exempt_time);
  problems.not_negative("spec.overTimeLimit", spec.over_time_limit);
  problems.memory("spec.memory", spec.memory);
  problems.conditions(spec);
  if (spec.requeue) {
    problems.not_negative("spec.requeue.delay", spec.requeue->delay);
    problems.range("spec.requeue.maxBatch", spec.requeue->max_batch, 0, 65'535);
  }
  if (spec.preempt_parameters) {
    problems.range("spec.preemptParameters.reorderCount", spec.preempt_parameters->reorder_count, 0,
                   1'000);
    problems.range("spec.preemptParameters.minExemptPriority",
                   spec.preempt_parameters->min_exempt_priority, 0, 4'294'967'295);
  }
  if (spec.node_reserve) {
    problems.range("spec.nodeReserve.memoryPercent", spec.node_reserve->memory_percent, 0, 90);
  }
  if (spec.timetable) {
    problems.not_negative("spec.timetable.lead", spec.timetable->lead);
    problems.not_negative("spec.timetable.settle", spec.timetable->settle);
    // A node's agent switches nothing else meanwhile, and the kill switch works within a second.
    problems.range("spec.timetable.barrier", spec.timetable->barrier, base::Duration{0},
                   seconds{1});
    problems.not_negative("spec.timetable.failOpenAfter", spec.timetable->fail_open_after);
  }
  return problems.take();
}

std::vector<std::string> check_partition(const kube::Partition& partition) {
  Problems problems;
  const kube::PartitionSpec& spec = partition.spec;
  problems.name(partition.metadata.name);
  if (spec.nodes.hostlist.has_value() == spec.nodes.selector.has_value()) {
    problems.add("spec.nodes: exactly one of hostlist and selector must be set; " +
                 std::string{spec.nodes.hostlist ? "remove one" : "add one"});
  }
  if (spec.nodes.hostlist) {
    const auto names = slurm::expand_hostlist(*spec.nodes.hostlist);
    if (!names.ok()) {
      problems.add("spec.nodes.hostlist: \"" + *spec.nodes.hostlist +
                   "\" is no hostlist: " + names.error().message + "; write it like n[12-16,20]");
    }
  }
  problems.range("spec.priorityTier", spec.priority_tier, 0, kTierMax);
  if (spec.over_subscribe) {
    problems.range("spec.overSubscribe.maxShare", spec.over_subscribe->max_share, 1, kShareMax);
    const auto policy = spec.over_subscribe->policy.value_or(kube::OverSubscribePolicy::kNever);
    if (spec.over_subscribe->max_share && policy != kube::OverSubscribePolicy::kOnRequest &&
        policy != kube::OverSubscribePolicy::kForce) {
      problems.add(
          "spec.overSubscribe.maxShare: has a meaning only with policy OnRequest or "
          "Force, not " +
          std::string{kube::to_string(policy)} + "; remove it or change the policy");
    }
  }
  problems.not_negative("spec.graceTime", spec.grace_time);
  problems.not_negative("spec.overTimeLimit", spec.over_time_limit);
  problems.memory("spec.memory", spec.memory);
  if (spec.limits) {
    const kube::PartitionLimits& limits = *spec.limits;
    problems.range("spec.limits.minNodes", limits.min_nodes, 1, 1'000'000);
    problems.range("spec.limits.maxNodes", limits.max_nodes, 1, 1'000'000);
    problems.range("spec.limits.maxCPUsPerNode", limits.max_cpus_per_node, 1, 65'535);
    if (limits.min_nodes && limits.max_nodes && *limits.min_nodes > *limits.max_nodes) {
      problems.add("spec.limits.minNodes: " + std::to_string(*limits.min_nodes) +
                   " is greater than maxNodes " + std::to_string(*limits.max_nodes) +
                   "; lower minNodes");
    }
    if (limits.default_time && limits.max_time && *limits.default_time > *limits.max_time) {
      problems.add("spec.limits.defaultTime: " + kube::format_duration(*limits.default_time) +
                   " is longer than maxTime " + kube::format_duration(*limits.max_time) +
                   "; lower defaultTime");
    }
  }
  for (const auto& [access, name] :
       {std::pair{&spec.allow, "spec.allow"}, std::pair{&spec.deny, "spec.deny"}}) {
    if (!*access) continue;
    for (const auto& [list, field] :
         {std::pair{&(*access)->namespaces, ".namespaces"}, std::pair{&(*access)->qos, ".qos"}}) {
      if (*list && (*list)->empty()) {
        problems.add(std::string{name} + field + ": is empty; name at least one, or remove it");
      }
    }
  }
  return problems.take();
}

std::vector<std::string> check_qos(const kube::Qos& qos) {
  Problems problems;
  const kube::QosSpec& spec = qos.spec;
  problems.name(qos.metadata.name);
  problems.range("spec.priority", spec.priority, 0, 4'294'967'293);
  if (spec.preempt_mode == kube::PreemptMode::kDisabled) {
    problems.add(
        "spec.preemptMode: Disabled is not possible for a QOS; use Cancel, Requeue or "
        "Suspend, or leave it out");
  }
  problems.not_negative("spec.preemptExemptTime", spec.preempt_exempt_time);
  problems.not_negative("spec.graceTime", spec.grace_time);
  if (spec.limits) {
    problems.range("spec.limits.maxJobsPerNamespace", spec.limits->max_jobs_per_namespace, 1,
                   INT32_MAX);
    problems.range("spec.limits.maxCPUsPerNamespace", spec.limits->max_cpus_per_namespace, 1,
                   INT32_MAX);
    problems.range("spec.limits.maxNodesPerJob", spec.limits->max_nodes_per_job, 1, INT32_MAX);
    problems.range("spec.limits.groupCPUs", spec.limits->group_cpus, 1, INT32_MAX);
    if (spec.limits->max_time && spec.limits->max_time->count() <= 0) {
      problems.add("spec.limits.maxTime: " + kube::format_duration(*spec.limits->max_time) +
                   " is not possible; use more than 0s, or leave it out for no limit");
    }
  }
  return problems.take();
}

sched::ClusterParameters translate_config(const kube::SchedulerConfigSpec& spec) {
  sched::ClusterParameters cluster;
  translate_select(spec.select.value_or(kube::SelectConfig{}), cluster);
  cluster.gang = spec.gang.value_or(true);
  cluster.preempt_type =
      translate(spec.preempt_type.value_or(kube::PreemptType::kPartitionPriority));
  cluster.preempt_mode = translate(spec.preempt_mode).value_or(default_preempt_mode(cluster));
  cluster.preempt_within = spec.preempt_within.value_or(false);
  cluster.preempt_priority = spec.preempt_priority.value_or(false);
  if (spec.preempt_exempt_time && spec.preempt_exempt_time->count() > 0) {
    cluster.preempt_exempt_time = spec.preempt_exempt_time;
  }
  if (spec.preempt_parameters) {
    const kube::PreemptParameters& from = *spec.preempt_parameters;
    cluster.preempt.reorder_count = from.reorder_count.value_or(1);
    cluster.preempt.strict_order = from.strict_order.value_or(false);
    cluster.preempt.youngest_first = from.youngest_first.value_or(false);
    if (from.min_exempt_priority) {
      cluster.preempt.min_exempt_priority =
          sched::Priority{static_cast<std::uint32_t>(*from.min_exempt_priority)};
    }
  }
  cluster.placement = spec.placement_policy == kube::PlacementPolicy::kMinimizePreemption
                          ? sched::PlacementPolicy::kMinimisePreemption
                          : sched::PlacementPolicy::kCompat;
  cluster.time_slice = spec.time_slice.value_or(cluster.time_slice);
  cluster.kill_wait = spec.kill_wait.value_or(cluster.kill_wait);
  cluster.over_time_limit = spec.over_time_limit.value_or(base::Duration{0});
  cluster.enforce_part_limits =
      translate(spec.enforce_partition_limits.value_or(kube::EnforcePartitionLimits::kNone));
  translate_queue(spec, cluster);
  translate_memory(spec.memory, cluster.default_memory, cluster.max_memory);
  if (spec.timetable) {
    cluster.timetable_lead = spec.timetable->lead.value_or(cluster.timetable_lead);
  }
  return cluster;
}

sched::PartitionConfig translate_partition(const std::string& name, const kube::PartitionSpec& spec,
                                           std::span<const kube::Node* const> nodes) {
  sched::PartitionConfig partition;
  partition.name = name;
  partition.nodes = nodes_of(spec.nodes, nodes);
  partition.is_default = spec.is_default.value_or(false);
  partition.state = translate(spec.state.value_or(kube::PartitionState::kUp));
  partition.priority_tier = static_cast<std::uint16_t>(spec.priority_tier.value_or(1));
  if (spec.over_subscribe) {
    partition.over_subscribe =
        translate(spec.over_subscribe->policy.value_or(kube::OverSubscribePolicy::kNever));
    partition.max_share = spec.over_subscribe->max_share.value_or(4);
  }
  partition.exclusive_user = spec.exclusive_user.value_or(false);
  partition.preempt_mode = translate(spec.preempt_mode);
  partition.preempt_priority = spec.preempt_priority.value_or(false);
  partition.grace_time = spec.grace_time.value_or(base::Duration{0});
  translate_memory(spec.memory, partition.default_memory, partition.max_memory);
  if (spec.limits) {
    partition.min_nodes = spec.limits->min_nodes.value_or(0);
    partition.max_nodes = spec.limits->max_nodes;
    partition.max_cpus_per_node = spec.limits->max_cpus_per_node;
    partition.default_time = spec.limits->default_time;
    partition.max_time = spec.limits->max_time;
  }
  partition.over_time_limit = spec.over_time_limit;
  partition.least_loaded = spec.least_loaded.value_or(false);
  partition.qos = spec.qos.value_or("");
  if (spec.allow) {
    partition.allow_users = spec.allow->namespaces;
    partition.allow_qos = spec.allow->qos;
  }
  if (spec.deny) {
    partition.deny_users = spec.deny->namespaces;
    partition.deny_qos = spec.deny->qos;
  }
  return partition;
}

sched::QosConfig translate_qos(const std::string& name, const kube::QosSpec& spec) {
  sched::QosConfig qos;
  qos.name = name;
  qos.priority = static_cast<std::uint32_t>(spec.priority.value_or(0));
  qos.preempt = spec.preempt;
  qos.preempt_mode = translate(spec.preempt_mode);
  qos.preempt_within = spec.preempt_within.value_or(false);
  qos.preempt_priority = spec.preempt_priority.value_or(false);
  qos.preempt_exempt_time = spec.preempt_exempt_time;
  qos.grace_time = spec.grace_time.value_or(base::Duration{0});
  for (const kube::QosFlag flag : spec.flags) {
    switch (flag) {
      case kube::QosFlag::kDenyOnLimit:
        qos.deny_on_limit = true;
        break;
      case kube::QosFlag::kPartitionMinNodes:
        qos.partition_min_nodes = true;
        break;
      case kube::QosFlag::kPartitionMaxNodes:
        qos.partition_max_nodes = true;
        break;
      case kube::QosFlag::kPartitionTimeLimit:
        qos.partition_time_limit = true;
        break;
      case kube::QosFlag::kOverPartQos:
        qos.over_part_qos = true;
        break;
    }
  }
  if (spec.limits) {
    qos.max_jobs_per_user = spec.limits->max_jobs_per_namespace;
    qos.max_cpus_per_user = spec.limits->max_cpus_per_namespace;
    qos.max_nodes_per_job = spec.limits->max_nodes_per_job;
    qos.group_cpus = spec.limits->group_cpus;
    qos.max_time = spec.limits->max_time;
  }
  return qos;
}

OperatorParameters operator_parameters(const kube::SchedulerConfigSpec& spec) {
  OperatorParameters parameters;
  if (spec.node_reserve) {
    parameters.memory_reserve_percent =
        spec.node_reserve->memory_percent.value_or(parameters.memory_reserve_percent);
  }
  if (spec.timetable) {
    parameters.settle = spec.timetable->settle.value_or(parameters.settle);
    parameters.clock = spec.timetable->clock.value_or(parameters.clock);
  }
  return parameters;
}

kube::PreemptMode preempt_mode_of(sched::PreemptMode mode) {
  switch (mode) {
    case sched::PreemptMode::kOff:
      return kube::PreemptMode::kDisabled;
    case sched::PreemptMode::kCancel:
      return kube::PreemptMode::kCancel;
    case sched::PreemptMode::kRequeue:
      return kube::PreemptMode::kRequeue;
    case sched::PreemptMode::kSuspend:
      return kube::PreemptMode::kSuspend;
  }
  return kube::PreemptMode::kDisabled;
}

}  // namespace control
