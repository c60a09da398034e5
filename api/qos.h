// QOS: quality of service: its priority, the QOS that it may preempt, and limits. SOURCE: api.md
// "QOS".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/limits.h"
#include "api/partition.h"
#include "kube/api/meta.h"

namespace kube {

// Slurm's flags of a QOS (sacctmgr): whether a job beyond a limit is refused at once, which limits
// of the partition the QOS overrides, and whether it reserves nodes for jobs that wait.
enum class QosFlag {
  kDenyOnLimit,
  kPartitionMinNodes,
  kPartitionMaxNodes,
  kPartitionTimeLimit,
  kOverPartQos,
  kNoReserve
};
constexpr auto names_of(std::type_identity<QosFlag>) {
  return std::to_array<EnumName<QosFlag>>({{QosFlag::kDenyOnLimit, "DenyOnLimit"},
                                           {QosFlag::kPartitionMinNodes, "PartitionMinNodes"},
                                           {QosFlag::kPartitionMaxNodes, "PartitionMaxNodes"},
                                           {QosFlag::kPartitionTimeLimit, "PartitionTimeLimit"},
                                           {QosFlag::kOverPartQos, "OverPartQOS"},
                                           {QosFlag::kNoReserve, "NoReserve"}});
}

// Absent = no limit.
struct QosLimits {
  std::optional<GroupLimits> group{};
  std::optional<JobLimits> per_job{};
  std::optional<ResourceAmounts> min_per_job{};
  std::optional<HolderLimits> per_namespace{};
  std::optional<HolderLimits> per_account{};

  friend bool operator==(const QosLimits&, const QosLimits&) = default;
};

// A QOS as sacctmgr has it.
struct QosSpec {
  std::optional<std::int64_t> priority{};
  std::vector<std::string> preempt{};  // names of QOS that it may preempt
  std::optional<PreemptMode> preempt_mode{};
  std::optional<bool> preempt_within{};    // PreemptMode WITHIN
  std::optional<bool> preempt_priority{};  // PreemptMode PRIORITY
  std::optional<base::Duration> preempt_exempt_time{};
  std::optional<base::Duration> grace_time{};
  std::vector<QosFlag> flags{};
  std::optional<QosLimits> limits{};
  std::optional<std::int32_t> usage_factor_percent{};  // UsageFactor

  friend bool operator==(const QosSpec&, const QosSpec&) = default;
};

struct QosStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<QosSpec> accepted{};                  // the last legal spec
  std::optional<PreemptMode> preempt_mode{};          // in force
  std::optional<std::int32_t> running{};
  std::optional<std::int32_t> pending{};
  Conditions conditions{};  // Accepted

  friend bool operator==(const QosStatus&, const QosStatus&) = default;
};

struct Qos {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "qos", "QOS", false};

  ObjectMeta metadata{};
  QosSpec spec{};
  QosStatus status{};

  friend bool operator==(const Qos&, const Qos&) = default;
};

template <>
base::Result<Qos> decode<Qos>(const JsonView& object);
template <>
const KnownFields& known_fields<Qos>();
nlohmann::json encode(const Qos& qos);

}  // namespace kube
