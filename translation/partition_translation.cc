#include "translation/partition_translation.h"

#include <algorithm>
#include <utility>

#include "base/natural_order.h"
#include "kube/api/time_format.h"
#include "slurm/hostlist.h"
#include "translation/pod_defaults.h"
#include "translation/policy_values.h"
#include "translation/spec_problems.h"

namespace control {
namespace {

// Slurm's own limits of PriorityTier and PriorityJobFactor (16 bits, two values reserved), and of
// the number in OverSubscribe=FORCE:n. The limit of billing weights is kubegang's own.
constexpr std::int64_t kTierMax = 65'533;
constexpr std::int64_t kShareMax = 1'024;
constexpr std::int64_t kBillingWeightMax = 1'000'000'000;

// The same four states as Slurm's; a switch, so that the compiler finds a new one.
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

// The API says in words what Slurm's option says in capitals: OnRequest is YES, Never is NO
// (1.2.2).
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

// The API has thousandths per GiB, the scheduler millionths per MiB: integers on both sides, so
// that the billing of a job is the same on every machine. A partition without weights counts one
// unit for each CPU (nullopt), which differs from weights that are all zero.
std::optional<sched::TresWeights> weights_of(const std::optional<kube::BillingWeights>& milli) {
  if (!milli) return std::nullopt;
  constexpr std::int64_t kMicroPerMilli = 1'000;
  constexpr std::int64_t kMibPerGib = 1'024;
  sched::TresWeights micro;
  micro[sched::Tres::kCpu] = milli->milli_per_cpu.value_or(0) * kMicroPerMilli;
  // Rounds to the nearest, so that the smallest weight does not vanish.
  micro[sched::Tres::kMemory] =
      (milli->milli_per_gibibyte.value_or(0) * kMicroPerMilli + kMibPerGib / 2) / kMibPerGib;
  micro[sched::Tres::kNode] = milli->milli_per_node.value_or(0) * kMicroPerMilli;
  micro[sched::Tres::kGpu] = milli->milli_per_gpu.value_or(0) * kMicroPerMilli;
  for (const auto& [type, each] : milli->milli_per_gpu_of_type) {
    micro.of_gpu_type[type] = each * kMicroPerMilli;
  }
  return micro;
}

// Names of a hostlist that do not exist yet are kept: they are nodes of the partition as soon as
// they join. A selector can only pick what exists. The order is Slurm's order of nodes (n2 before
// n10).
std::vector<std::string> nodes_of(const kube::PartitionNodes& nodes,
                                  std::span<const kube::Node* const> existing) {
  if (nodes.hostlist) {
    auto names = slurm::expand_hostlist(*nodes.hostlist);
    // check_partition refuses such a list in a new spec. The accepted one is read from the status,
    // where another version of the operator may have left it.
    if (!names.ok()) return {};
    std::sort(names->begin(), names->end(), base::natural_less);
    names->erase(std::unique(names->begin(), names->end()), names->end());
    return std::move(*names);
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

// An empty list could mean all of them or none of them.
void check_access(const kube::PartitionSpec& spec, SpecProblems& problems) {
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
}

void check_pod_defaults(const kube::PartitionSpec& spec, SpecProblems& problems) {
  if (!spec.pod_defaults) return;
  for (std::string& sentence : pod_defaults_problems(*spec.pod_defaults)) {
    problems.add(std::move(sentence));
  }
}

}  // namespace

// Checks what the object says by itself, like check_config().
// Two partitions that are both the default, and a QOS that does not exist, show only beside the
// other objects (config_acceptance.h).
//
// A hostlist and a selector together would leave open whether the partition has the union or the
// intersection. Only the spelling of a hostlist is checked: whether its nodes exist changes from
// day to day, and is a warning.
std::vector<std::string> check_partition(const kube::Partition& partition) {
  SpecProblems problems;
  const kube::PartitionSpec& spec = partition.spec;
  problems.name(partition.metadata.name);
  if (spec.nodes.hostlist.has_value() == spec.nodes.selector.has_value()) {
    problems.add("spec.nodes: exactly one of hostlist and selector must be set; " +
                 std::string{spec.nodes.hostlist ? "remove one" : "add one"});
  }
  if (spec.nodes.hostlist) {
    const auto names = slurm::expand_hostlist(*spec.nodes.hostlist);
    if (!names.ok()) {
      problems.add("spec.nodes.hostlist: " + names.error().message + " (example: n[12-16,20])");
    }
  }
  problems.range("spec.priorityTier", spec.priority_tier, 0, kTierMax);
  if (spec.over_subscribe) {
    problems.range("spec.overSubscribe.maxShare", spec.over_subscribe->max_share, 1, kShareMax);
    // Slurm writes the number into the policy's own value (FORCE:4), so it cannot be without one
    // there.
    const auto policy = spec.over_subscribe->policy.value_or(kube::OverSubscribePolicy::kNever);
    if (spec.over_subscribe->max_share && policy != kube::OverSubscribePolicy::kOnRequest &&
        policy != kube::OverSubscribePolicy::kForce) {
      problems.add(
          "spec.overSubscribe.maxShare: has a meaning only with policy OnRequest or "
          "Force, not " +
          std::string{kube::to_string(policy)} + "; remove it or change the policy");
    }
  }
  problems.range("spec.priorityJobFactor", spec.priority_job_factor, 0, kTierMax);
  if (spec.billing_weights) {
    const kube::BillingWeights& weights = *spec.billing_weights;
    problems.range("spec.billingWeights.milliPerCPU", weights.milli_per_cpu, 0, kBillingWeightMax);
    problems.range("spec.billingWeights.milliPerGiB", weights.milli_per_gibibyte, 0,
                   kBillingWeightMax);
    problems.range("spec.billingWeights.milliPerNode", weights.milli_per_node, 0,
                   kBillingWeightMax);
    problems.range("spec.billingWeights.milliPerGPU", weights.milli_per_gpu, 0, kBillingWeightMax);
    problems.by_gpu_type("spec.billingWeights.milliPerGPUOfType", weights.milli_per_gpu_of_type,
                         kBillingWeightMax);
  }
  problems.not_negative("spec.graceTime", spec.grace_time);
  problems.not_negative("spec.overTimeLimit", spec.over_time_limit);
  problems.memory("spec.memory", spec.memory);
  problems.range("spec.defaultCPUsPerGPU", spec.default_cpus_per_gpu, 1, 65'535);
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
    // Jobs without a time limit of their own would ask for more than the partition allows.
    if (limits.default_time && limits.max_time && *limits.default_time > *limits.max_time) {
      problems.add("spec.limits.defaultTime: " + kube::format_duration(*limits.default_time) +
                   " is longer than maxTime " + kube::format_duration(*limits.max_time) +
                   "; lower defaultTime");
    }
  }
  check_pod_defaults(spec, problems);
  check_access(spec, problems);
  return problems.take();
}

// An absent field gets Slurm's default (1.2). `nodes` are all nodes of the cluster, for partitions
// that select nodes by labels; so the result changes when nodes or their labels do.
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
  partition.default_per_gpu = default_per_gpu(spec.default_cpus_per_gpu, spec.memory);
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
  partition.priority_job_factor = static_cast<std::uint16_t>(spec.priority_job_factor.value_or(1));
  partition.billing_weights_micro = weights_of(spec.billing_weights);
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

}  // namespace control
