// The processors of this machine, as the kernel lists them.
#pragma once

#include <string>

#include "api/node_timetable.h"
#include "base/result.h"

namespace agent {

// Reads `directory` (/sys/devices/system/cpu): `online`, and of each online CPU its package and
// core. Where packages have different numbers of cores the smallest counts, so nothing is promised
// that is not there. `cpu_ids` names the CPUs that count in the order package, core, thread: core
// number c of the node, counted so, has the CPUs c * threads_per_core and following of that list.
// kNotFound or kInvalidArgument: the directory is not what it should be.
// SOURCE: kernel Documentation/admin-guide/cputopology.rst.
base::Result<kube::NodeTopology> read_topology(const std::string& directory);

}  // namespace agent
