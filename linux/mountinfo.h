// The mounted cgroup hierarchies that have a freezer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace os {

enum class CgroupVersion { kV1, kV2 };

inline std::string to_string(CgroupVersion version) {
  return version == CgroupVersion::kV1 ? "v1" : "v2";
}

// A mounted hierarchy that has a freezer.
struct CgroupMount {
  CgroupVersion version = CgroupVersion::kV2;
  std::string path;
  friend bool operator==(const CgroupMount&, const CgroupMount&) = default;
};

// Returns the v2 mounts, then the v1 freezer mounts, of a /proc/self/mountinfo. Lines that have
// another form are skipped. SOURCE: proc(5) mountinfo; octal escapes are undone.
std::vector<CgroupMount> parse_mountinfo(std::string_view text);

// Returns the same, of this process.
std::vector<CgroupMount> cgroup_mounts();

// Returns the path of the first mount of this version; "" if there is none.
std::string first_mount(const std::vector<CgroupMount>& mounts, CgroupVersion version);

}  // namespace os
