// The variables that a batch script takes along from where it was submitted: sbatch --export.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/result.h"

namespace cli {

// Returns true in a pod, in a batch script, and on a machine whose administrator has set
// KUBEGANG_LOGIN_NODE because its files and programs are those of the pods. Elsewhere, on a laptop
// for one, variables like PATH and HOME mean nothing to a pod.
bool is_in_cluster();

// Returns those of this process, NAME=VALUE.
std::vector<std::string> own_variables();

// Returns the variables that a script gets by --export: "ALL", "NONE", or a list of names and
// NAME=VALUE, with ALL among them or not. `own` are those of the caller, NAME=VALUE. Names that
// hold secrets (*TOKEN*, *SECRET*, *PASSWORD*) go only if they are listed, because a Job can be
// read by more people than its author. `left_out` gets a sentence for each that does not go.
// kInvalidArgument: together more than 64 KiB, or more than a Job may have.
base::Result<std::vector<kube::BatchVariable>> exported_variables(
    const std::string& exports, std::span<const std::string> own,
    std::vector<std::string>& left_out);

}  // namespace cli
