// `kubectl gang whatif` and `sbatch --test-only`: when and where a job would start. A Job with
// spec.testOnly asks the operator; it is deleted when the answer is there, or does not come.
#pragma once

#include <string>

#include "api/job.h"
#include "cli/cluster/session.h"
#include "cli/cluster/submit.h"
#include "cli/program.h"

namespace cli {

// Returns the Job with its answer (status.forecast). kUnavailable: none came within 30 s, or the
// cluster does not know such questions.
base::Result<kube::Job> ask_operator(const Session& session, kube::Job question);

// Returns "train, other and 2 more jobs": the names of jobs, as far as they are known.
std::string preempted_text(const kube::ForecastStops& stops);

// Prints the answer, for people unless `arguments` ask for JSON or YAML. Exits with 1 if the job
// would not start.
int run_whatif(const Session& session, const SubmitArguments& arguments,
               const SubmitRequest& request, Output output);

std::string whatif_help();

}  // namespace cli
