// Limits on single jobs (1.4): MaxTRES, MaxTRESPerNode, MinTRES and MaxWall of QOS and
// associations. They depend on nothing but the job, so that they are known before it is tried.
// Pure.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "scheduler/limits/limit_scope.h"
#include "scheduler/model/tres.h"

namespace sched {

// Compares the job's request with MaxWall, MaxTRES and MinTRES. `wall`: its limit of time; nothing
// = not given.
std::optional<LimitHit> over_job_limits(const LimitScope& scope, const TresCounts& counts,
                                        std::optional<base::Duration> wall);
// Compares the resources that it would get: with the same limits, and with MaxTRESPerNode, which
// holds for the mean of its nodes.
std::optional<LimitHit> over_limits_with_nodes(const LimitScope& scope, const TresCounts& counts);

// Returns the limit of time that counts for the job: MaxWall.
std::optional<base::Duration> max_wall(const LimitScope& scope);

// --- words that limits/ shares ---
// "CPUs", "MiB", "nodes", "billing units", "GPUs of type a100".
std::string unit_of(const TresKind& kind);
enum class LimitKind { kGroup, kJob, kNode, kMin, kUser, kAccount };
// Returns the reason for a limit of this kind on that resource.
Reason tres_reason(LimitKind limit, Tres kind, bool of_qos);

}  // namespace sched
