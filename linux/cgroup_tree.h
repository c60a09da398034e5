// A tree of cgroups of our own: where one can be made, and how to look into it, thaw it, kill
// what runs in it and remove it. Nothing here freezes.
//
// Thread-safe: functions without state. Paths are absolute.
// SOURCE: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/freezer-subsystem.rst.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "linux/mountinfo.h"

namespace os {

// A new directory `prefix` in the first hierarchy (of the wanted version, if one is wanted) where
// this process may make cgroups, freeze them and put processes into them. kPermissionDenied or
// kNotFound with a sentence that names each place that was tried and what is missing there.
struct CgroupRoot {
  CgroupVersion version = CgroupVersion::kV2;
  std::string path;  // of the new directory
  friend bool operator==(const CgroupRoot&, const CgroupRoot&) = default;
};
base::Result<CgroupRoot> make_cgroup_root(std::optional<CgroupVersion> wanted,
                                          std::string_view prefix);

// `mkdir -p`. A directory that exists is not an error.
base::Status make_cgroup(const std::string& path);

// Returns every process in `path` and below it, in no order. A directory that is gone has none.
std::vector<pid_t> processes_below(const std::string& path);

bool cgroup_exists(const std::string& path);

// Returns true if the kernel says that all of it is frozen; false if it is gone.
bool is_frozen(const std::string& path);

// Thaws `path` and everything below it; what is gone is skipped.
void thaw_below(CgroupVersion version, const std::string& path);

// SIGKILL to every process in `path` and below, thawed before and after on v1 (freezer.md rule 9).
// Does not wait for their end.
void kill_below(CgroupVersion version, const std::string& path);

// kill_below and rmdir bottom up, repeated until nothing is left or `patience` has passed: then
// kTimeout with what is left. Blocks; a millisecond when the processes die at once.
base::Status destroy_cgroup(CgroupVersion version, const std::string& path,
                            base::Duration patience);

}  // namespace os
