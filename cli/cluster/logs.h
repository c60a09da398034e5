// `kubectl gang logs`: what the pods of a job have said.
#pragma once

#include <string>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct LogsOptions {
  bool follow = false;    // until the pods end; before they run, waits for them
  bool previous = false;  // of the start before this one, as long as its pods are there
};

// Prints the lines of the first container of each pod, in the order of the pods; with `follow` as
// they come. With several pods each line begins with its pod's name.
int run_logs(const Session& session, const std::string& job, const LogsOptions& options,
             Output output);

}  // namespace cli
