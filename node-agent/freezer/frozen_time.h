// How long a pod has been frozen so far, as the kernel counts it.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {

// Parses `cgroup.stat.local`; nullopt if it has no frozen_usec line.
std::optional<base::Duration> parse_frozen_time(std::string_view text);

// Returns the time since the cgroup was made, whatever froze it, freezes of its ancestors included.
// nullopt on cgroup v1, on kernels that do not count it (before 6.18), and if the cgroup is gone.
// Cost: a few microseconds.
// SOURCE: kernel Documentation/admin-guide/cgroup-v2.rst, cgroup.stat.local, frozen_usec.
std::optional<base::Duration> read_frozen_time(const PodCgroup& cgroup);

}  // namespace agent
