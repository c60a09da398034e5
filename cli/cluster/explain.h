// `kubectl gang explain JOB`: why a job waits, or where it is.
#pragma once

#include <string>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// On a terminal the text has lines of its width where names allow it.
int run_explain(const Session& session, const std::string& job, bool as_json, Output output);

}  // namespace cli
