// `kubectl-gang simulate FILE`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct SimulateOptions {
  std::string file;
  bool json = false;
  std::vector<std::string> at;  // instants at which the queue is shown, in seconds
  std::string svg;              // file to write the picture to; empty = none
  std::string swf;              // trace whose jobs are submitted too; empty = none
  std::optional<double> load;   // of the trace, which is stretched to it; nullopt = as it is
  bool from_records = false;    // submits what kubegang-records remembers …
  std::string database;         // … in this file; empty = of the cluster
  std::string since, until;     // as sacct has times; empty: seven days ago, now
};

// `session` is asked for records; null: there is no cluster.
int run_simulate(const SimulateOptions& options, const Session* session, Output output);

}  // namespace cli
