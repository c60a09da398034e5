// `kubectl gang dashboard`: the page on 127.0.0.1, with the rights of the user who runs it.
#pragma once

#include <string>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct DashboardOptions {
  int port = 0;  // 0 = any free one
  bool all_namespaces = false;
};

// Returns what the page shows of one job: what `explain -o json` says, its pods, and what its
// reader cannot do with it.
base::Result<std::string> page_job_details(const Session& session, const std::string& ns,
                                           const std::string& name);

// Serves until the program is interrupted.
int run_dashboard(const Session& session, const DashboardOptions& options, Output output);

}  // namespace cli
