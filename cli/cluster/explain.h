// `kubectl gang explain JOB`: why a job waits, or where it is.
#pragma once

#include <string>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// Writes lines of the terminal's width, if there is one and names allow it.
int run_explain(const Session& session, const std::string& job, bool as_json, Output output);

}  // namespace cli
