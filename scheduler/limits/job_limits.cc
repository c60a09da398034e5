#include "scheduler/limits/job_limits.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace sched {
namespace {

// Slurm has a reason of its own for each combination of limit, holder and resource, spelled without
// a pattern ("MaxCpuPerAccount", "QOSMaxCpuPerJobLimit"); so they stand in a table.
struct ReasonRow {
  using ByTres = std::array<Reason, kTresCount>;
  LimitKind limit;
  ByTres of_qos;
  ByTres of_association;  // None: associations have no such limit
};
constexpr Reason kNo = Reason::kNone;
constexpr std::array<ReasonRow, 6> kReasons = {{
    // The resources stand in the order of Tres: CPUs, memory, nodes, billing units, GPUs.
    {LimitKind::kGroup,
     {{Reason::kQosGrpCpuLimit, Reason::kQosGrpMemLimit, Reason::kQosGrpNodeLimit,
       Reason::kQosGrpBilling, Reason::kQosGrpGres}},
     {{Reason::kAssocGrpCpuLimit, Reason::kAssocGrpMemLimit, Reason::kAssocGrpNodeLimit,
       Reason::kAssocGrpBilling, Reason::kAssocGrpGres}}},
    {LimitKind::kJob,
     {{Reason::kQosMaxCpuPerJobLimit, Reason::kQosMaxMemoryPerJob, Reason::kQosMaxNodePerJobLimit,
       Reason::kQosMaxBillingPerJob, Reason::kQosMaxGresPerJob}},
     {{Reason::kAssocMaxCpuPerJobLimit, Reason::kAssocMaxMemPerJob,
       Reason::kAssocMaxNodePerJobLimit, Reason::kAssocMaxBillingPerJob,
       Reason::kAssocMaxGresPerJob}}},
    // There is no number of nodes per node.
    {LimitKind::kNode,
     {{Reason::kQosMaxCpuPerNode, Reason::kQosMaxMemoryPerNode, kNo, Reason::kQosMaxBillingPerNode,
       Reason::kQosMaxGresPerNode}},
     {{Reason::kAssocMaxCpuPerNode, Reason::kAssocMaxMemPerNode, kNo,
       Reason::kAssocMaxBillingPerNode, Reason::kAssocMaxGresPerNode}}},
    {LimitKind::kMin,
     {{Reason::kQosMinCpuNotSatisfied, Reason::kQosMinMemory, Reason::kQosMinNode,
       Reason::kQosMinBilling, Reason::kQosMinGres}},
     {{kNo, kNo, kNo, kNo, kNo}}},
    {LimitKind::kUser,
     {{Reason::kQosMaxCpuPerUserLimit, Reason::kQosMaxMemoryPerUser,
       Reason::kQosMaxNodePerUserLimit, Reason::kQosMaxBillingPerUser, Reason::kQosMaxGresPerUser}},
     {{kNo, kNo, kNo, kNo, kNo}}},
    {LimitKind::kAccount,
     {{Reason::kMaxCpuPerAccount, Reason::kMaxMemoryPerAccount, Reason::kMaxNodePerAccount,
       Reason::kMaxBillingPerAccount, Reason::kMaxGresPerAccount}},
     {{kNo, kNo, kNo, kNo, kNo}}},
}};

// Rounded up, as limits are (1.7).
std::string minutes(base::Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::minutes>(time).count()) + " minutes";
}

// Returns "asks for 8 CPUs per node; ": the part of the message that is the job's.
std::string asks(std::int64_t wanted, const TresKind& kind, const char* each) {
  return "asks for " + std::to_string(wanted) + " " + unit_of(kind) + each + "; ";
}

using Hit = std::optional<LimitHit>;

// The first holder that sets MaxWall decides, whether the job exceeds it or not: a QOS that allows
// more than the account overrides the account.
Hit over_max_wall(const LimitScope& scope, std::optional<base::Duration> wall) {
  if (!wall) return std::nullopt;
  return scope.first(
      [](const Limits& limits) -> const auto& { return limits.job_wall; }, true,
      [&](const LimitHolder& holder, base::Duration limit) -> Hit {
        if (*wall <= limit) return std::nullopt;
        return LimitHit{holder.qos != nullptr ? Reason::kQosMaxWallDurationPerJobLimit
                                              : Reason::kAssocMaxWallDurationPerJobLimit,
                        "asks for " + minutes(*wall) + "; " + holder.name(scope.cluster) +
                            " allows " + minutes(limit)};
      });
}

// MaxTRES and MaxTRESPerNode. As with MaxWall the first holder that sets one decides (9.1). `which`
// chooses the reason, `limits` the member that has the limit, and `each` is added to the words of
// the message.
Hit over_max(const LimitScope& scope, LimitKind which, TresLimits Limits::*limits,
             const TresKind& kind, std::int64_t wanted, const char* each) {
  return scope.first(
      [&](const Limits& of) -> const auto& { return (of.*limits)[kind]; }, true,
      [&](const LimitHolder& holder, std::int64_t limit) -> Hit {
        if (wanted <= limit) return std::nullopt;
        return LimitHit{tres_reason(which, kind.tres, holder.qos != nullptr),
                        asks(wanted, kind, each) + holder.name(scope.cluster) + " allows " +
                            std::to_string(limit)};
      });
}

// MinTRES, which QOS alone have.
Hit under_min(const LimitScope& scope, const TresKind& kind, std::int64_t wanted) {
  return scope.first(
      [&](const Limits& of) -> const auto& { return of.min_tres[kind]; }, false,
      [&](const LimitHolder& holder, std::int64_t limit) -> Hit {
        if (wanted >= limit) return std::nullopt;
        return LimitHit{tres_reason(LimitKind::kMin, kind.tres, true),
                        asks(wanted, kind, "") + holder.name(scope.cluster) + " wants at least " +
                            std::to_string(limit)};
      });
}

}  // namespace

// Returns the unit as messages to users have it.
std::string unit_of(const TresKind& kind) {
  switch (kind.tres) {
    case Tres::kCpu:
      return "CPUs";
    case Tres::kMemory:
      return "MiB";
    case Tres::kNode:
      return "nodes";
    case Tres::kBilling:
      return "billing units";
    case Tres::kGpu:
      return kind.gpu_type.empty() ? "GPUs" : "GPUs of type " + kind.gpu_type;
  }
  return "";
}

// None for a combination that Slurm does not have.
Reason tres_reason(LimitKind limit, Tres kind, bool of_qos) {
  for (const ReasonRow& row : kReasons) {
    if (row.limit == limit)
      return (of_qos ? row.of_qos : row.of_association)[static_cast<std::size_t>(kind)];
  }
  return Reason::kNone;
}

// MaxWall before the resources, each resource with its maximum before its minimum: the first hit is
// the reason.
std::optional<LimitHit> over_job_limits(const LimitScope& scope, const TresCounts& counts,
                                        std::optional<base::Duration> wall) {
  if (auto hit = over_max_wall(scope, wall)) return hit;
  for (const TresKind& kind : scope.cluster.tres_kinds()) {
    const std::int64_t wanted = counts[kind];
    if (auto hit = over_max(scope, LimitKind::kJob, &Limits::job_tres, kind, wanted, "")) {
      return hit;
    }
    if (auto hit = under_min(scope, kind, wanted)) return hit;
  }
  return std::nullopt;
}

// The limits on each job once its nodes are known: those of the job, and those per node. The time
// limit was looked at before. For example, 10 CPUs on 3 nodes are 3 for each, rounded down, and a
// MaxTRESPerNode of 3 allows them.
std::optional<LimitHit> over_limits_with_nodes(const LimitScope& scope, const TresCounts& counts) {
  if (auto hit = over_job_limits(scope, counts, std::nullopt)) return hit;
  const std::int64_t nodes_count = std::max<std::int64_t>(counts[Tres::kNode], 1);
  for (const TresKind& kind : scope.cluster.tres_kinds()) {
    if (kind.tres == Tres::kNode) continue;
    // The mean and not the fullest node, as Slurm does (R9.9).
    const std::int64_t wanted = counts[kind] / nodes_count;
    if (auto hit =
            over_max(scope, LimitKind::kNode, &Limits::node_tres, kind, wanted, " per node")) {
      return hit;
    }
  }
  return std::nullopt;
}

// Returns the limit of a job without one of its own (13.6): the first holder's that sets one.
std::optional<base::Duration> max_wall(const LimitScope& scope) {
  return scope.first(
      [](const Limits& limits) -> const auto& { return limits.job_wall; }, true,
      [](const LimitHolder&, base::Duration limit) { return std::optional{limit}; });
}

}  // namespace sched
