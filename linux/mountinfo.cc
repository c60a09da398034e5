#include "linux/mountinfo.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>

namespace os {
namespace {

// mountinfo escapes blank, tab, line end and backslash as three octal digits: a blank is \040.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      int value = 0;
      std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8);
      out.push_back(static_cast<char>(value));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace

// A line is "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPEROPTIONS".
// Only mount point, type and super options matter here.
std::vector<CgroupMount> parse_mountinfo(std::string_view text) {
  std::vector<CgroupMount> found;
  std::istringstream lines{std::string{text}};
  for (std::string line; std::getline(lines, line);) {
    // The optional fields before the separator vary in number; the file system's type follows it.
    const auto separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before{line.substr(0, separator)};
    std::istringstream after{line.substr(separator + 3)};
    std::string id, parent, device, root, mount_point, type, source, options;
    // proc(5): id, parent, device, root and mount point before the options; after the separator
    // type, source and the file system's own options, which for cgroup v1 name its controllers.
    before >> id >> parent >> device >> root >> mount_point;
    after >> type >> source >> options;
    if (type == "cgroup2") {
      found.push_back({CgroupVersion::kV2, unescape(mount_point)});
    } else if (type == "cgroup" && ("," + options + ",").find(",freezer,") != std::string::npos) {
      found.push_back({CgroupVersion::kV1, unescape(mount_point)});
    }
  }
  // Stable: mounts of one version keep the kernel's order.
  std::stable_sort(found.begin(), found.end(), [](const CgroupMount& a, const CgroupMount& b) {
    return a.version == CgroupVersion::kV2 && b.version == CgroupVersion::kV1;
  });
  return found;
}

// Returns those of this process's mount namespace: in a container these are the mounts that the
// container has, and no others can be written to.
std::vector<CgroupMount> cgroup_mounts() {
  std::ifstream file{"/proc/self/mountinfo"};
  std::ostringstream text;
  text << file.rdbuf();
  return parse_mountinfo(std::move(text).str());
}

// Several mounts of one version show the same hierarchy, so the first one is as good as any.
std::string first_mount(const std::vector<CgroupMount>& mounts, CgroupVersion version) {
  const auto found = std::find_if(mounts.begin(), mounts.end(), [&](const CgroupMount& mount) {
    return mount.version == version;
  });
  return found == mounts.end() ? "" : found->path;
}

}  // namespace os
