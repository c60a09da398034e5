// For how long a pod has stood still so far, as the kernel counts it.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {

// Of the text of `cgroup.stat.local`; nothing where it has no such line.
std::optional<base::Duration> parse_frozen_time(std::string_view text);

// Since the cgroup was made, whoever froze it, and ancestors' freezes included. Nothing on cgroup
// v1, on kernels that do not count it (before 6.18), and when the cgroup is gone. Cost: a few
// microseconds.
// SOURCE: kernel Documentation/admin-guide/cgroup-v2.rst, cgroup.stat.local, frozen_usec.
std::optional<base::Duration> read_frozen_time(const PodCgroup& cgroup);

}  // namespace agent
