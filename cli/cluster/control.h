// suspend, resume, cancel, requeue, hold, release: each changes one field of Job.spec; the operator
// does the rest (api.md, "Job").
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

enum class ControlVerb { kSuspend, kResume, kCancel, kRequeue, kHold, kRelease };

// One line per job that was changed. Goes on after a failure; kExitFailed if there was one.
// `jobs` are names or numbers.
int run_control(const Session& session, ControlVerb verb, const std::vector<std::string>& jobs,
                Output output);

}  // namespace cli
