// Slurm's spelling of a dependency (13.1): "afterok:12:13,after:7+5", "afterany:3?singleton".
// SOURCE: sbatch(1). Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/model/dependency.h"

namespace slurm {

inline constexpr std::size_t kDependencyTermsMax = 1'024;  // the CRD's bound

// Errors are kEndsWithOne (exit_code.h). "" means none. The order of terms is that of the
// text, repetitions are left out. Kinds of Slurm that are not there (afterburstbuffer, expand) are
// errors that name them.
base::Result<sched::Dependency> parse_dependency(std::string_view what, std::string_view text);

// Returns "afterok", without the job.
std::string_view name_of(sched::DependencyKind kind);
// Returns "afterok:12", "afterok:12_3", "after:7+5", "singleton".
std::string format_term(const sched::DependencyTerm& term);

}  // namespace slurm
