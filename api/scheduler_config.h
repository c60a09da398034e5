// SchedulerConfig: the singleton `default` with the cluster-level parameters; absent = all
// defaults, which the operator knows. SOURCE: api.md "SchedulerConfig".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/partition.h"
#include "kube/api/meta.h"
#include "kube/api/quantity.h"

namespace kube {

inline constexpr std::string_view kSchedulerConfigName = "default";

enum class SelectType { kLinear, kConsTres };
constexpr auto names_of(std::type_identity<SelectType>) {
  return std::to_array<EnumName<SelectType>>(
      {{SelectType::kLinear, "Linear"}, {SelectType::kConsTres, "ConsTres"}});
}

enum class SelectUnit { kCpu, kCore, kSocket };
constexpr auto names_of(std::type_identity<SelectUnit>) {
  return std::to_array<EnumName<SelectUnit>>(
      {{SelectUnit::kCpu, "CPU"}, {SelectUnit::kCore, "Core"}, {SelectUnit::kSocket, "Socket"}});
}

enum class PreemptType { kNone, kPartitionPriority, kQos };
constexpr auto names_of(std::type_identity<PreemptType>) {
  return std::to_array<EnumName<PreemptType>>(
      {{PreemptType::kNone, "None"},
       {PreemptType::kPartitionPriority, "PartitionPriority"},
       {PreemptType::kQos, "QOS"}});
}

enum class PlacementPolicy { kCompat, kMinimizePreemption };
constexpr auto names_of(std::type_identity<PlacementPolicy>) {
  return std::to_array<EnumName<PlacementPolicy>>(
      {{PlacementPolicy::kCompat, "Compat"},
       {PlacementPolicy::kMinimizePreemption, "MinimizePreemption"}});
}

enum class EnforcePartitionLimits { kNone, kAny, kAll };
constexpr auto names_of(std::type_identity<EnforcePartitionLimits>) {
  return std::to_array<EnumName<EnforcePartitionLimits>>({{EnforcePartitionLimits::kNone, "None"},
                                                          {EnforcePartitionLimits::kAny, "Any"},
                                                          {EnforcePartitionLimits::kAll, "All"}});
}

// What an unsynchronised clock of a node does.
enum class ClockPolicy { kWarn, kRequire };
constexpr auto names_of(std::type_identity<ClockPolicy>) {
  return std::to_array<EnumName<ClockPolicy>>(
      {{ClockPolicy::kWarn, "Warn"}, {ClockPolicy::kRequire, "Require"}});
}

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

struct PreemptParameters {
  std::optional<std::int32_t> reorder_count{};
  std::optional<bool> strict_order{};
  std::optional<bool> youngest_first{};
  std::optional<std::int64_t> min_exempt_priority{};

  friend bool operator==(const PreemptParameters&, const PreemptParameters&) = default;
};

struct RequeueConfig {
  std::optional<bool> by_default{};  // "default"
  std::optional<base::Duration> delay{};
  std::optional<std::int32_t> max_batch{};

  friend bool operator==(const RequeueConfig&, const RequeueConfig&) = default;
};

struct NodeReserve {
  std::optional<std::int32_t> memory_percent{};

  friend bool operator==(const NodeReserve&, const NodeReserve&) = default;
};

struct TimetableConfig {
  std::optional<base::Duration> lead{};
  std::optional<base::Duration> settle{};
  std::optional<base::Duration> barrier{};
  std::optional<base::Duration> fail_open_after{};
  std::optional<ClockPolicy> clock{};

  friend bool operator==(const TimetableConfig&, const TimetableConfig&) = default;
};

struct SchedulerConfigSpec {
  std::optional<SelectConfig> select{};
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
  std::optional<RequeueConfig> requeue{};
  std::optional<base::Duration> over_time_limit{};
  std::optional<EnforcePartitionLimits> enforce_partition_limits{};
  std::optional<MemoryLimits> memory{};
  std::optional<NodeReserve> node_reserve{};
  std::optional<TimetableConfig> timetable{};

  friend bool operator==(const SchedulerConfigSpec&, const SchedulerConfigSpec&) = default;
};

struct SchedulerConfigStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<SchedulerConfigSpec> accepted{};      // the last legal spec
  std::optional<PreemptMode> preempt_mode{};          // in force
  std::optional<std::int64_t> next_job_id{};          // first number that is not reserved yet
  Conditions conditions{};                            // Accepted

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
base::Result<SchedulerConfig> decode<SchedulerConfig>(const nlohmann::json& object);
nlohmann::json encode(const SchedulerConfig& config);

}  // namespace kube
