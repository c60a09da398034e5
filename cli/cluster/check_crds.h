// `kubectl gang check-crds FILE…`: which objects of the cluster have fields that the CRDs of
// another version do not know. The API server drops these at the next write of the object once such
// CRDs are in force, so an administrator asks before a rollback, and the chart's hook does.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct CheckCrdsOptions {
  // Files with CRDs, or folders of such files; other documents in them are passed over, so the
  // output of `helm get manifest` does.
  std::vector<std::string> paths;
};

// Prints a line for each object, and kExitFailed if there is one. Jobs that have ended are not
// looked at: their specs have no effect.
int run_check_crds(const Session& session, const CheckCrdsOptions& options, Output output);

}  // namespace cli
