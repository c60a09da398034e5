// The CPUs that a pod's cgroup may use, on cgroup v2.
//
// Only the pod's own `cpuset.cpus` is written, never a container's: below v2 a child may run on the
// intersection of its own set with its parent's, or on its parent's where they have no CPU in
// common or where it has none of its own, so the pod's set holds for everything in it, and no order
// between parent and child must be kept: the parent may shrink below its children, and a child
// grows again by itself when its parent does. (v1 refuses to shrink a parent below its children,
// EBUSY, and to widen a child beyond its parent, EACCES: there kubelet could no longer change a
// container's set. CPU sets are not applied on v1, architecture.md 4.) SOURCE: kernel
// Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus and cpuset.cpus.effective.
#pragma once

#include <string>

#include "base/result.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {

// Writes the list where the file says something else. kInvalidArgument: this cgroup cannot be bound
// (v1, no cpuset controller), or the kernel gives it other CPUs (`cpuset.cpus.effective`);
// kPermissionDenied, kUnavailable: the kernel refuses the write. REQUIRES: `cpus` is a list of
// CPUs. Cost: two reads; a write moves every task of the pod, so never call it in a switch.
base::Status bind_to_cpus(const PodCgroup& cgroup, const std::string& cpus);

// Lets the pod use all CPUs that its parent may: empties the list. A kernel that refuses that for a
// cgroup with processes (6.1: ENOSPC) gets the list of what the parent has now, so a CPU that comes
// online later is not the pod's there. Errors as above.
base::Status unbind(const PodCgroup& cgroup);

}  // namespace agent
