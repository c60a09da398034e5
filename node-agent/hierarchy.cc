#include "node-agent/hierarchy.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "node-agent/pod_cgroups.h"

namespace agent {
namespace {

// "\040" is a space.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream{line};
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

bool has_option(const std::string& options, std::string_view wanted) {
  return ("," + options + ",").find("," + std::string{wanted} + ",") != std::string::npos;
}

bool has_kubepods(const std::string& root) {
  std::error_code ignored;
  return std::filesystem::is_directory(root + "/kubepods", ignored) ||
         std::filesystem::is_directory(root + "/kubepods.slice", ignored);
}

int error_of_stat(const std::string& path) {
  struct statfs about {};
  return ::statfs(path.c_str(), &about) == 0 ? 0 : errno;
}

bool is_cgroup_file_system(const std::string& path) {
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0) return false;
  return about.f_type == CGROUP2_SUPER_MAGIC || about.f_type == CGROUP_SUPER_MAGIC;
}

// Of a cgroup below the root of its hierarchy, where these files always are: a v1 hierarchy may be
// that of another controller.
base::Status check_freezer(const std::string& cgroup) {
  for (const char* file : {"/cgroup.freeze", "/freezer.state"}) {
    if (::access((cgroup + file).c_str(), F_OK) == 0) return {};
  }
  return base::invalid_argument("cgroup " + cgroup +
                                ": has no freezer (neither cgroup.freeze nor freezer.state): mount "
                                "the cgroup v2 or the v1 freezer hierarchy there");
}

base::Status check_writable(const std::string& directory) {
  struct statfs about {};
  if (::statfs(directory.c_str(), &about) == 0 && (about.f_flags & ST_RDONLY) != 0) {
    return base::Error{base::Code::kPermissionDenied,
                       "cgroup root " + directory +
                           ": mounted read-only, so no pod can be frozen: mount it writable"};
  }
  if (::faccessat(AT_FDCWD, directory.c_str(), W_OK, AT_EACCESS) != 0) {
    return base::Error{base::Code::kPermissionDenied,
                       "cgroup root " + directory + ": not writable for uid " +
                           std::to_string(::geteuid()) +
                           ", so no pod can be frozen: run as root or be given the directory"};
  }
  return {};
}

}  // namespace

FreezerMounts parse_mountinfo(std::string_view text) {
  FreezerMounts mounts;
  std::istringstream lines{std::string{text}};
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = words(line);
    std::size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 3 >= fields.size()) continue;
    const std::string& type = fields[dash + 1];
    if (type == "cgroup2" && mounts.v2.empty()) mounts.v2 = unescape(fields[4]);
    if (type == "cgroup" && mounts.v1.empty() && has_option(fields[dash + 3], "freezer")) {
      mounts.v1 = unescape(fields[4]);
    }
  }
  return mounts;
}

base::Result<std::string> detect_cgroup_root() {
  std::ifstream file{"/proc/self/mountinfo"};
  std::stringstream text;
  text << file.rdbuf();
  const FreezerMounts mounts = parse_mountinfo(text.str());
  if (!mounts.v1.empty() && has_kubepods(mounts.v1)) return mounts.v1;
  if (!mounts.v2.empty()) return mounts.v2;
  if (!mounts.v1.empty()) return mounts.v1;
  return base::Error{base::Code::kNotFound,
                     "no cgroup v2 hierarchy and no v1 freezer is mounted: name the directory that "
                     "holds kubepods with --cgroup-root"};
}

base::Status check_cgroup_root(const std::string& root, const std::string& kubelet_root) {
  if (const int error = error_of_stat(root); error != 0) {
    return base::Error{base::Code::kNotFound, "cgroup root " + root + ": " + std::strerror(error) +
                                                  ": name the directory that holds kubepods with "
                                                  "--cgroup-root"};
  }
  if (is_cgroup_file_system(root)) return check_writable(root);
  std::string looked_at;
  bool mounted = false;
  for (const std::string& path : kubepods_paths(kubelet_root)) {
    const std::string kubepods = root + "/" + path;
    looked_at += (looked_at.empty() ? "" : " nor ") + kubepods;
    if (!is_cgroup_file_system(kubepods)) continue;
    if (base::Status status = check_freezer(kubepods); !status) return status;
    if (base::Status status = check_writable(kubepods); !status) return status;
    mounted = true;
  }
  if (mounted) return {};
  return base::invalid_argument(
      "cgroup root " + root + ": not a cgroup file system, and neither " + looked_at +
      " is one: name the directory in a cgroup v2 or v1 freezer hierarchy that holds kubepods with "
      "--cgroup-root, or mount the node's kubepods there");
}

}  // namespace agent
