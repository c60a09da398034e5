// SchedulerConfig: the singleton `default` with the cluster-level parameters; absent = all
// defaults, which the operator knows. SOURCE: api.md "SchedulerConfig".
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/devices_config.h"
#include "api/job.h"
#include "api/partition.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"

namespace kube {

inline constexpr std::string_view kSchedulerConfigName = "default";

// Slurm's SelectType: whole nodes (select/linear), or CPUs, cores or sockets of them
// (select/cons_tres).
enum class SelectType { kLinear, kConsTres };
constexpr auto names_of(std::type_identity<SelectType>) {
  return std::to_array<EnumName<SelectType>>(
      {{SelectType::kLinear, "Linear"}, {SelectType::kConsTres, "ConsTres"}});
}

// The smallest part of a node that is given away: CR_CPU, CR_Core, CR_Socket of
// SelectTypeParameters.
enum class SelectUnit { kCpu, kCore, kSocket };
constexpr auto names_of(std::type_identity<SelectUnit>) {
  return std::to_array<EnumName<SelectUnit>>(
      {{SelectUnit::kCpu, "CPU"}, {SelectUnit::kCore, "Core"}, {SelectUnit::kSocket, "Socket"}});
}

// Slurm's PreemptType: jobs of a lower partition, or of a QOS that the job's own may preempt.
enum class PreemptType { kNone, kPartitionPriority, kQos };
constexpr auto names_of(std::type_identity<PreemptType>) {
  return std::to_array<EnumName<PreemptType>>(
      {{PreemptType::kNone, "None"},
       {PreemptType::kPartitionPriority, "PartitionPriority"},
       {PreemptType::kQos, "QOS"}});
}

// Compat chooses nodes as Slurm does; MinimizePreemption takes, of the placements that fit, the one
// with the fewest, lowest and smallest victims.
enum class PlacementPolicy { kCompat, kMinimizePreemption };
constexpr auto names_of(std::type_identity<PlacementPolicy>) {
  return std::to_array<EnumName<PlacementPolicy>>(
      {{PlacementPolicy::kCompat, "Compat"},
       {PlacementPolicy::kMinimizePreemption, "MinimizePreemption"}});
}

// Slurm's EnforcePartitionLimits: whether a job is refused at submission if no partition (Any), or
// not every partition (All), that it names can ever run it.
enum class EnforcePartitionLimits { kNone, kAny, kAll };
constexpr auto names_of(std::type_identity<EnforcePartitionLimits>) {
  return std::to_array<EnumName<EnforcePartitionLimits>>({{EnforcePartitionLimits::kNone, "None"},
                                                          {EnforcePartitionLimits::kAny, "Any"},
                                                          {EnforcePartitionLimits::kAll, "All"}});
}

// The consequence of an unsynchronized clock of a node.
enum class ClockPolicy { kWarn, kRequire };
constexpr auto names_of(std::type_identity<ClockPolicy>) {
  return std::to_array<EnumName<ClockPolicy>>(
      {{ClockPolicy::kWarn, "Warn"}, {ClockPolicy::kRequire, "Require"}});
}

// SelectType and SelectTypeParameters; memory is CR_..._Memory, task_affinity
// TaskPlugin=task/affinity, the rest CR_LLN, CR_ONE_TASK_PER_CORE and CR_CORE_DEFAULT_DIST_BLOCK.
struct SelectConfig {
  std::optional<SelectType> type{};
  std::optional<SelectUnit> unit{};
  std::optional<bool> memory{};
  std::optional<bool> task_affinity{};
  std::optional<bool> least_loaded{};
  std::optional<bool> one_task_per_core{};
  std::optional<bool> block_distribution{};

  friend bool operator==(const SelectConfig&, const SelectConfig&) = default;
};

// PreemptParameters: reorder_count, strict_order, youngest_first, min_exempt_priority,
// reclaim_licenses.
struct PreemptParameters {
  std::optional<std::int32_t> reorder_count{};
  std::optional<bool> strict_order{};
  std::optional<bool> youngest_first{};
  std::optional<std::int64_t> min_exempt_priority{};
  std::optional<bool> reclaim_licenses{};

  friend bool operator==(const PreemptParameters&, const PreemptParameters&) = default;
};

enum class SchedulerType { kBackfill, kBuiltin };
constexpr auto names_of(std::type_identity<SchedulerType>) {
  return std::to_array<EnumName<SchedulerType>>(
      {{SchedulerType::kBackfill, "Backfill"}, {SchedulerType::kBuiltin, "Builtin"}});
}

// SchedulerParameters=bf_…, by the names that Slurm gives them; users are namespaces. Slurm's 0 for
// "any number" is an absent field here.
struct BackfillConfig {
  std::optional<base::Duration> interval{};
  std::optional<base::Duration> window{};
  std::optional<base::Duration> resolution{};
  std::optional<base::Duration> window_linear{};
  std::optional<std::int32_t> max_job_test{};
  std::optional<std::int32_t> max_job_start{};
  std::optional<std::int32_t> max_job_part{};
  std::optional<std::int32_t> max_job_user{};
  std::optional<std::int32_t> max_job_user_part{};
  std::optional<base::Duration> min_age_reserve{};
  std::optional<std::int64_t> min_prio_reserve{};
  std::optional<std::int32_t> job_part_count_reserve{};
  std::optional<std::int32_t> max_job_array_resv{};
  std::optional<std::int32_t> node_space_size{};
  std::optional<bool> continues{};  // "continue"
  std::optional<bool> busy_nodes{};
  std::optional<bool> one_resv_per_job{};
  std::optional<bool> running_job_reserve{};
  std::optional<bool> licenses{};

  friend bool operator==(const BackfillConfig&, const BackfillConfig&) = default;
};

// JobRequeue, the pause before a requeued job is eligible again, and the bound of requeues after
// which the job is held.
struct RequeueConfig {
  std::optional<bool> by_default{};  // "default"
  std::optional<base::Duration> delay{};
  std::optional<std::int32_t> max_batch{};

  friend bool operator==(const RequeueConfig&, const RequeueConfig&) = default;
};

// kill_invalid_depend; of jobs that do not say it themselves.
struct DependencyConfig {
  std::optional<NeverSatisfied> if_never_satisfied{};

  friend bool operator==(const DependencyConfig&, const DependencyConfig&) = default;
};

// Memory of each node that jobs do not get, beyond what the node itself keeps back.
struct NodeReserve {
  std::optional<std::int32_t> memory_percent{};

  friend bool operator==(const NodeReserve&, const NodeReserve&) = default;
};

// Kubegang's own. lead: how far ahead a change of turns is published; settle: how long the
// containers of a pod must have run before it counts as started; barrier: how long a node waits for
// the outgoing pods to be frozen before it thaws the incoming ones; fail_open_after: after how long
// without an operator agents thaw everything.
struct TimetableConfig {
  std::optional<base::Duration> lead{};
  std::optional<base::Duration> settle{};
  std::optional<base::Duration> barrier{};
  std::optional<base::Duration> fail_open_after{};
  std::optional<ClockPolicy> clock{};

  friend bool operator==(const TimetableConfig&, const TimetableConfig&) = default;
};

enum class PriorityType { kBasic, kMultifactor };
constexpr auto names_of(std::type_identity<PriorityType>) {
  return std::to_array<EnumName<PriorityType>>(
      {{PriorityType::kBasic, "Basic"}, {PriorityType::kMultifactor, "Multifactor"}});
}

// Slurm's Fair Tree, or the classic formula (PriorityFlags=NO_FAIR_TREE).
enum class FairShareRule { kTree, kClassic };
constexpr auto names_of(std::type_identity<FairShareRule>) {
  return std::to_array<EnumName<FairShareRule>>(
      {{FairShareRule::kTree, "Tree"}, {FairShareRule::kClassic, "Classic"}});
}

enum class UsageResetPeriod { kNever, kDaily, kWeekly, kMonthly, kQuarterly, kYearly };
constexpr auto names_of(std::type_identity<UsageResetPeriod>) {
  return std::to_array<EnumName<UsageResetPeriod>>({{UsageResetPeriod::kNever, "Never"},
                                                    {UsageResetPeriod::kDaily, "Daily"},
                                                    {UsageResetPeriod::kWeekly, "Weekly"},
                                                    {UsageResetPeriod::kMonthly, "Monthly"},
                                                    {UsageResetPeriod::kQuarterly, "Quarterly"},
                                                    {UsageResetPeriod::kYearly, "Yearly"}});
}

enum class UsageDecay { kHalfLife, kNever };
constexpr auto names_of(std::type_identity<UsageDecay>) {
  return std::to_array<EnumName<UsageDecay>>(
      {{UsageDecay::kHalfLife, "HalfLife"}, {UsageDecay::kNever, "Never"}});
}

// PriorityFlags, but for NO_FAIR_TREE, which is PriorityConfig::fair_share.
enum class PriorityFlag {
  kAccrueAlways,
  kCalculateRunning,
  kIncreaseOnly,
  kMaxTres,
  kNoNormalAccount,
  kNoNormalPartition,
  kNoNormalQos,
  kNoNormalTres,
  kSmallRelativeToTime
};
constexpr auto names_of(std::type_identity<PriorityFlag>) {
  return std::to_array<EnumName<PriorityFlag>>(
      {{PriorityFlag::kAccrueAlways, "AccrueAlways"},
       {PriorityFlag::kCalculateRunning, "CalculateRunning"},
       {PriorityFlag::kIncreaseOnly, "IncreaseOnly"},
       {PriorityFlag::kMaxTres, "MaxTRES"},
       {PriorityFlag::kNoNormalAccount, "NoNormalAccount"},
       {PriorityFlag::kNoNormalPartition, "NoNormalPartition"},
       {PriorityFlag::kNoNormalQos, "NoNormalQOS"},
       {PriorityFlag::kNoNormalTres, "NoNormalTRES"},
       {PriorityFlag::kSmallRelativeToTime, "SmallRelativeToTime"}});
}

// PriorityWeight…; the last four are PriorityWeightTRES.
struct PriorityWeights {
  std::optional<std::int64_t> age{};
  std::optional<std::int64_t> account{};
  std::optional<std::int64_t> fair_share{};
  std::optional<std::int64_t> job_size{};
  std::optional<std::int64_t> partition{};
  std::optional<std::int64_t> qos{};
  std::optional<std::int64_t> cpus{};
  std::optional<std::int64_t> memory{};
  std::optional<std::int64_t> nodes{};
  std::optional<std::int64_t> gpus{};
  std::map<std::string, std::int64_t> gpus_of_type{};

  friend bool operator==(const PriorityWeights&, const PriorityWeights&) = default;
};

// PriorityType and the Priority... parameters of slurm.conf.
struct PriorityConfig {
  std::optional<PriorityType> type{};
  std::optional<PriorityWeights> weights{};
  std::optional<base::Duration> max_age{};
  std::optional<bool> favor_small{};
  std::optional<FairShareRule> fair_share{};
  std::optional<std::int32_t> dampening_factor{};
  std::optional<UsageDecay> usage_decay{};
  std::optional<base::Duration> decay_half_life{};
  std::optional<UsageResetPeriod> usage_reset_period{};
  std::optional<base::Duration> calc_period{};
  std::vector<PriorityFlag> flags{};

  friend bool operator==(const PriorityConfig&, const PriorityConfig&) = default;
};

// The cluster-wide lines of slurm.conf.
struct SchedulerConfigSpec {
  std::optional<SelectConfig> select{};
  std::optional<SchedulerType> scheduler_type{};
  std::optional<BackfillConfig> backfill{};
  std::optional<PreemptType> preempt_type{};
  std::optional<PreemptMode> preempt_mode{};
  std::optional<bool> gang{};
  std::optional<bool> preempt_within{};    // PreemptMode WITHIN
  std::optional<bool> preempt_priority{};  // PreemptMode PRIORITY
  std::optional<base::Duration> preempt_exempt_time{};
  std::optional<PreemptParameters> preempt_parameters{};
  std::optional<PlacementPolicy> placement_policy{};
  std::optional<base::Duration> time_slice{};
  std::optional<base::Duration> kill_wait{};
  std::optional<base::Duration> complete_wait{};
  std::optional<base::Duration> start_timeout{};  // kubegang's own; for jobs that have none
  std::optional<RequeueConfig> requeue{};
  std::optional<DependencyConfig> dependency{};
  std::optional<std::int32_t> max_array_size{};
  std::optional<base::Duration> over_time_limit{};
  std::optional<EnforcePartitionLimits> enforce_partition_limits{};
  std::optional<MemoryLimits> memory{};
  std::optional<std::int32_t> default_cpus_per_gpu{};  // DefCpuPerGPU
  std::map<std::string, std::int32_t> licenses{};      // how many there are
  std::optional<DevicesConfig> devices{};              // kubegang's own, with what gres.conf says
  std::vector<std::string> runtime_classes{};          // kubegang's own; that templates may name
  std::optional<NodeReserve> node_reserve{};
  std::optional<TimetableConfig> timetable{};
  std::optional<PriorityConfig> priority{};

  friend bool operator==(const SchedulerConfigSpec&, const SchedulerConfigSpec&) = default;
};

struct SchedulerConfigStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<SchedulerConfigSpec> accepted{};      // the last legal spec
  std::optional<PreemptMode> preempt_mode{};          // in force
  std::optional<std::int64_t> next_job_id{};          // first number that is not reserved yet
  Conditions conditions{};                            // Accepted, LicensesExceeded

  friend bool operator==(const SchedulerConfigStatus&, const SchedulerConfigStatus&) = default;
};

struct SchedulerConfig {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "schedulerconfigs",
                                          "SchedulerConfig", false};

  ObjectMeta metadata{};
  SchedulerConfigSpec spec{};
  SchedulerConfigStatus status{};

  friend bool operator==(const SchedulerConfig&, const SchedulerConfig&) = default;
};

template <>
base::Result<SchedulerConfig> decode<SchedulerConfig>(const JsonView& object);
template <>
const KnownFields& known_fields<SchedulerConfig>();
nlohmann::json encode(const SchedulerConfig& config);

}  // namespace kube
