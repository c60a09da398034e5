// `kubectl gang share`: who has used how much of which share, as sshare shows it.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"
#include "scheduler/priority/priority_views.h"

namespace cli {

// The tree, each account before its namespaces and the accounts below it, siblings by name.
std::string format_shares(const std::vector<sched::ShareView>& shares);

struct ShareOptions {
  bool json = false;
};
int run_share(const Session& session, const ShareOptions& options, Output output);

}  // namespace cli
