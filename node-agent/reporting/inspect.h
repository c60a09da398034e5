// `kubegang-agent inspect`: what the agent of this node has under control, for a person on the
// node. Reads the journal and the shown pods in the run directory and looks at the cgroups
// itself, so it also works when the agent hangs or is dead, and needs no API server.
#pragma once

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "node-agent/freezer/pod_cgroups.h"
#include "node-agent/reporting/shown_pods.h"
#include "node-agent/survival/journal.h"

namespace agent {

// Returns true if an agent has this run directory now.
bool agent_runs(const std::string& run_directory);

// Prints of each listed pod: index, standing, what the kernel says, whether it is its turn, its
// slots in the cycle, its last switch, within 80 columns; below them its name and, if it is or was
// under control, its cgroup. Before all of them the timetable in force and when it changes next.
std::string inspect(const Journal& journal, const std::map<std::string, ShownPod>& shown,
                    const PodCgroups& cgroups, base::Instant now);

}  // namespace agent
