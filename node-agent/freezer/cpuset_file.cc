#include "node-agent/freezer/cpuset_file.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "linux/cgroup_file.h"
#include "linux/cpu_list.h"
#include "linux/system_error.h"

namespace agent {
namespace {

// A list of single CPUs of the largest machine would be longer; the kernel prints ranges.
constexpr std::size_t kListBytesMax = 4096;

// Returns the first line of a file of cpuset, "" for an empty list. `what` names the file in an
// error.
base::Result<std::string> read_list(const os::FileDescriptor& file, const std::string& what) {
  std::string buffer(kListBytesMax, '\0');
  const os::FileText read = os::read_file(file.get(), buffer);
  if (read.result != IoResult::kOk) {
    return base::Error{base::Code::kUnavailable, what + ": " + std::string{to_string(read.result)}};
  }
  return std::string{read.text.substr(0, read.text.find('\n'))};
}

// Compares sets and not texts: the kernel prints "0-3" for what was written as "0,1,2,3". A list
// that cannot be parsed counts as empty, as an unset cpuset is.
bool same_cpus(const std::string& a, const std::string& b) {
  std::vector<int> x = os::parse_cpu_list(a).value_or(std::vector<int>{});
  std::vector<int> y = os::parse_cpu_list(b).value_or(std::vector<int>{});
  std::sort(x.begin(), x.end());
  std::sort(y.begin(), y.end());
  return x == y;
}

// The missing file has two causes, which the administrator mends in different ways.
base::Error why_there_is_no_file(const PodCgroup& cgroup, const base::Error& error) {
  if (error.code != base::Code::kNotFound) return error.with_context("cgroup " + cgroup.path);
  const bool v2 = os::open_beneath(cgroup.directory.get(), "cgroup.freeze", O_RDONLY).ok();
  return base::invalid_argument(
      "cgroup " + cgroup.path +
      (v2 ? ": has no cpuset controller: enable it in cgroup.subtree_control of its parents"
          : ": CPU sets are not applied on cgroup v1"));
}

constexpr const char* kListName = "cpuset.cpus";

// Returns the CPUs of the cgroup above, which the pod's cgroup has when its own list is empty.
// By ".." and so not beneath the pod's directory, hence not by open_beneath(). The directory is
// open and cannot be exchanged, and the name is a constant.
base::Result<std::string> cpus_above(const PodCgroup& cgroup) {
  const std::string name = std::string{"../"} + kListName + ".effective";
  const os::FileDescriptor file{
      ::openat(cgroup.directory.get(), name.c_str(), O_RDONLY | O_CLOEXEC)};
  const std::string what = "cgroup " + cgroup.path + "/" + name;
  if (!file.is_open()) return os::error_from_errno(what, errno);
  return read_list(file, what);
}

// Writes the list if the file says something else: a write moves every task of the pod.
base::Status write_list(const PodCgroup& cgroup, const std::string& cpus) {
  base::Result<os::FileDescriptor> file =
      os::open_beneath(cgroup.directory.get(), kListName, O_RDWR);
  if (!file) return why_there_is_no_file(cgroup, file.error());
  const std::string what = "cgroup " + cgroup.path + ": " + kListName;
  const base::Result<std::string> current = read_list(*file, what);
  if (!current) return current.error();
  if (same_cpus(*current, cpus)) return {};
  const std::string line = cpus + "\n";
  if (::pwrite(file->get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return os::error_from_errno(what + " = " + cpus, errno);
  }
  return {};
}

}  // namespace

// 1. Empty the list. 2. If the kernel refuses that, write the CPUs of the cgroup above, which has
//    the same effect for now.
base::Status unbind(const PodCgroup& cgroup) {
  const base::Status emptied = write_list(cgroup, "");
  // Linux 6.1 answers ENOSPC if a list is emptied while there are processes below it.
  if (emptied || emptied.error().code != base::Code::kUnavailable) return emptied;
  const base::Result<std::string> all = cpus_above(cgroup);
  if (!all) return emptied;
  return write_list(cgroup, *all);
}

// The kernel of v2 accepts a list that the parent does not have in full and applies the
// intersection, so a write that succeeds proves nothing. cpuset.cpus.effective shows the CPUs that
// the pod really has.
base::Status bind_to_cpus(const PodCgroup& cgroup, const std::string& cpus) {
  if (base::Status status = write_list(cgroup, cpus); !status) return status;
  const std::string name = kListName;
  const std::string what = "cgroup " + cgroup.path + ": " + name;
  base::Result<os::FileDescriptor> effective =
      os::open_beneath(cgroup.directory.get(), name + ".effective", O_RDONLY);
  if (!effective) return {};
  const base::Result<std::string> granted = read_list(*effective, what + ".effective");
  if (!granted) return granted.error();
  if (same_cpus(*granted, cpus)) return {};
  return base::invalid_argument(what + " = " + cpus + ": the cgroups above it leave " + *granted);
}

}  // namespace agent
