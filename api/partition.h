// Partition: a set of nodes with a scheduling policy. SOURCE: api.md "Partition"; the
// defaults of absent fields are the operator's business, so absent is kept apart from any value.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/pod_defaults.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"

namespace kube {

// Slurm's State: Up takes and starts jobs, Down takes but does not start, Drain starts those that
// it has and takes no new ones, Inactive does neither.
enum class PartitionState { kUp, kDown, kDrain, kInactive };
constexpr auto names_of(std::type_identity<PartitionState>) {
  return std::to_array<EnumName<PartitionState>>({{PartitionState::kUp, "Up"},
                                                  {PartitionState::kDown, "Down"},
                                                  {PartitionState::kDrain, "Drain"},
                                                  {PartitionState::kInactive, "Inactive"}});
}

// Slurm's OverSubscribe = NO, YES, FORCE, EXCLUSIVE.
enum class OverSubscribePolicy { kNever, kOnRequest, kForce, kExclusive };
constexpr auto names_of(std::type_identity<OverSubscribePolicy>) {
  return std::to_array<EnumName<OverSubscribePolicy>>(
      {{OverSubscribePolicy::kNever, "Never"},
       {OverSubscribePolicy::kOnRequest, "OnRequest"},
       {OverSubscribePolicy::kForce, "Force"},
       {OverSubscribePolicy::kExclusive, "Exclusive"}});
}

// A field of Partition, QOS and SchedulerConfig.
enum class PreemptMode { kDisabled, kCancel, kRequeue, kSuspend };
constexpr auto names_of(std::type_identity<PreemptMode>) {
  return std::to_array<EnumName<PreemptMode>>({{PreemptMode::kDisabled, "Disabled"},
                                               {PreemptMode::kCancel, "Cancel"},
                                               {PreemptMode::kRequeue, "Requeue"},
                                               {PreemptMode::kSuspend, "Suspend"}});
}

// The nodes of the partition, by name or by label. Exactly one of the two is present.
struct PartitionNodes {
  std::optional<std::string> hostlist{};  // "n[12-16,20]"
  std::optional<LabelSelector> selector{};

  friend bool operator==(const PartitionNodes&, const PartitionNodes&) = default;
};

// max_share is the number behind Slurm's FORCE or YES: how many jobs may share a core by taking
// turns.
struct OverSubscribe {
  std::optional<OverSubscribePolicy> policy{};
  std::optional<std::int32_t> max_share{};

  friend bool operator==(const OverSubscribe&, const OverSubscribe&) = default;
};

// DefMemPerCPU, MaxMemPerCPU, DefMemPerNode, MaxMemPerNode and DefMemPerGPU of a partition, and of
// the whole cluster in SchedulerConfig.
struct MemoryLimits {
  std::optional<Bytes> default_per_cpu{};
  std::optional<Bytes> max_per_cpu{};
  std::optional<Bytes> default_per_node{};
  std::optional<Bytes> max_per_node{};
  std::optional<Bytes> default_per_gpu{};

  friend bool operator==(const MemoryLimits&, const MemoryLimits&) = default;
};

// MinNodes, MaxNodes, DefaultTime, MaxTime, MaxCPUsPerNode.
struct PartitionLimits {
  std::optional<std::int32_t> min_nodes{};
  std::optional<std::int32_t> max_nodes{};
  std::optional<base::Duration> default_time{};
  std::optional<base::Duration> max_time{};
  std::optional<std::int32_t> max_cpus_per_node{};

  friend bool operator==(const PartitionLimits&, const PartitionLimits&) = default;
};

// The price of one second of a job, in thousandths of billing units (TRESBillingWeights).
struct BillingWeights {
  std::optional<std::int64_t> milli_per_cpu{};
  std::optional<std::int64_t> milli_per_gibibyte{};
  std::optional<std::int64_t> milli_per_node{};
  std::optional<std::int64_t> milli_per_gpu{};
  std::map<std::string, std::int64_t> milli_per_gpu_of_type{};

  friend bool operator==(const BillingWeights&, const BillingWeights&) = default;
};

// AllowAccounts and AllowQos, with namespaces for accounts, and their Deny counterparts. A list
// that is absent says nothing; one that is present names at least one.
struct AccessList {
  std::optional<std::vector<std::string>> namespaces{};
  std::optional<std::vector<std::string>> qos{};

  friend bool operator==(const AccessList&, const AccessList&) = default;
};

// A line PartitionName=... of slurm.conf. Absent fields have Slurm's defaults, and where Slurm has
// it so, those of SchedulerConfig.
struct PartitionSpec {
  PartitionNodes nodes{};
  std::optional<bool> is_default{};  // "default"
  std::optional<PartitionState> state{};
  std::optional<std::int32_t> priority_tier{};
  std::optional<OverSubscribe> over_subscribe{};
  std::optional<bool> exclusive_user{};
  std::optional<PreemptMode> preempt_mode{};
  std::optional<bool> preempt_priority{};  // PreemptMode PRIORITY
  std::optional<base::Duration> grace_time{};
  std::optional<MemoryLimits> memory{};
  std::optional<std::int32_t> default_cpus_per_gpu{};  // DefCpuPerGPU
  std::optional<PartitionLimits> limits{};
  std::optional<base::Duration> over_time_limit{};
  std::optional<bool> least_loaded{};
  std::optional<std::string> qos{};
  std::optional<std::int32_t> priority_job_factor{};
  std::optional<BillingWeights> billing_weights{};
  std::optional<AccessList> allow{};
  std::optional<AccessList> deny{};
  std::optional<bool> taint_nodes{};
  std::optional<PodDefaults> pod_defaults{};

  friend bool operator==(const PartitionSpec&, const PartitionSpec&) = default;
};

struct PartitionJobCounts {
  std::int32_t pending = 0;
  std::int32_t running = 0;
  std::int32_t suspended = 0;

  friend bool operator==(const PartitionJobCounts&, const PartitionJobCounts&) = default;
};

// Nodes that take no new jobs, for the same reason.
struct UnusableNodes {
  std::string reason{};   // a word in CamelCase
  std::string message{};  // with the node as its subject: "is cordoned"
  std::int32_t nodes = 0;
  std::string hostlist{};  // as many of them as fit

  friend bool operator==(const UnusableNodes&, const UnusableNodes&) = default;
};

struct PartitionStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<PartitionSpec> accepted{};            // the last legal spec
  std::optional<PreemptMode> preempt_mode{};          // in force
  std::optional<std::int32_t> nodes{};
  std::optional<std::int32_t> cpus{};
  std::optional<std::int32_t> unusable_nodes{};  // how many of them take no new jobs
  std::vector<UnusableNodes> unusable{};         // which, and why; the largest group first
  std::optional<PartitionJobCounts> jobs{};
  Conditions conditions{};  // Accepted

  friend bool operator==(const PartitionStatus&, const PartitionStatus&) = default;
};

struct Partition {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "partitions", "Partition", false};

  ObjectMeta metadata{};
  PartitionSpec spec{};
  PartitionStatus status{};

  friend bool operator==(const Partition&, const Partition&) = default;
};

template <>
base::Result<Partition> decode<Partition>(const JsonView& object);
template <>
const KnownFields& known_fields<Partition>();
nlohmann::json encode(const Partition& partition);

}  // namespace kube
