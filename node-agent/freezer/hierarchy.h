// The directory that holds the kubepods tree on this machine, and checks that it can be used.
#pragma once

#include <string>

#include "base/result.h"

namespace agent {

// Returns the hierarchy that kubelet's pods are in: on a hybrid machine v1 if kubepods is there
// with its controllers, else v2. kNotFound: neither is mounted.
base::Result<std::string> detect_cgroup_root();

// Returns ok if pods can be frozen below `root`: it is a directory of a cgroup file system, or a
// plain one that holds the mounted kubepods tree (a container that was given no more than that),
// below `kubelet_root` if kubelet has its own --cgroup-root. Otherwise one sentence that says what
// is wrong and what to do: not there, no cgroup file system, no freezer, mounted read-only, not
// writable.
base::Status check_cgroup_root(const std::string& root, const std::string& kubelet_root = "");

}  // namespace agent
