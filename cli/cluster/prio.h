// `kubectl gang prio`: where the priorities of waiting jobs come from, as sprio shows it.
#pragma once

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct PrioOptions {
  bool all_namespaces = false;
  bool weights = false;  // those of the configuration instead
  bool json = false;
};
int run_prio(const Session& session, const PrioOptions& options, Output output);

}  // namespace cli
