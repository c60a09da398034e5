// The scheduler's enumerations in the API's spelling, and back.
#pragma once

#include <optional>
#include <string_view>

#include "api/job.h"
#include "scheduler/decision.h"
#include "scheduler/model/job.h"

namespace control {

// Slurm's name of the reason ("PartitionTimeLimit"); "" for none.
std::string_view reason_name(sched::Reason reason);
std::optional<sched::Reason> parse_reason(std::string_view name);

kube::JobState state_of(sched::JobState state);
sched::JobState state_of(kube::JobState state);

sched::DependencyKind kind_of(kube::DependencyType type);
kube::DependencyType type_of(sched::DependencyKind kind);
sched::TermState term_state_of(kube::DependencyState state);
kube::DependencyState term_state_of(sched::TermState state);

kube::EndingVerdict verdict_of(sched::EndingVerdict verdict);
// Returns the verdict of a job that ended by itself. REQUIRES: state is final.
kube::EndingVerdict verdict_of(sched::JobState state);
// Returns the origin of a committed ending: decided by the scheduler, or the job's own end.
std::optional<sched::EndingVerdict> decided_verdict(kube::EndingVerdict verdict);
std::optional<sched::JobState> own_verdict(kube::EndingVerdict verdict);

}  // namespace control
