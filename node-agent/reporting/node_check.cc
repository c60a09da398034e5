#include "node-agent/reporting/node_check.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sstream>

#include "linux/system_error.h"
#include "linux/text_file.h"
#include "node-agent/freezer/pod_cgroups.h"

// Each check answers for one thing that a switch needs from the node: what was found, how bad that
// is, and what to change. "Missing" is for that without which no pod can be frozen or thawed again;
// "weak" for what makes switches late, or gangs less well kept apart. Nothing is tried on a pod: a
// check runs every 10 s beside gangs that take turns.
namespace agent {
namespace {

// The file is one short line of names.
constexpr std::size_t kControllersBytesMax = 4096;
// The lowest: the question is only whether the kernel grants SCHED_FIFO at all.
constexpr int kLowestFifoPriority = 1;

// For any user: rights are checked where a file is used. So a tree that is there but not writable
// is reported as such, and not as a missing one.
bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// One of the places where kubelet may keep all pods.
struct Kubepods {
  std::string path;
  bool systemd = false;
  bool v2 = false;

  std::string freezer() const { return path + (v2 ? "/cgroup.freeze" : "/freezer.state"); }
};

// Returns the places that exist and have a freezer, systemd's first. More than one is possible
// after a change of kubelet's cgroupDriver without a restart of the node.
// For example /sys/fs/cgroup/kubepods.slice of systemd's driver, /sys/fs/cgroup/kubepods of
// cgroupfs's.
std::vector<Kubepods> find_kubepods(const NodeCheckInputs& inputs) {
  std::vector<Kubepods> found;
  if (inputs.cgroup_root.empty()) return found;
  bool systemd = true;  // kubepods_paths() names systemd's first
  for (const std::string& path : kubepods_paths(inputs.kubelet_root)) {
    // v2 has cgroup.freeze in each cgroup, v1 freezer.state: the file tells which of the two
    // hierarchies was mounted at that root.
    Kubepods kubepods{.path = inputs.cgroup_root + "/" + path, .systemd = systemd};
    systemd = false;
    kubepods.v2 = exists(kubepods.path + "/cgroup.freeze");
    if (exists(kubepods.freezer())) found.push_back(std::move(kubepods));
  }
  return found;
}

// Only v1 is weak and not missing: gangs take turns there, with the limits of freezer.md 2.5.
Grant check_hierarchy(const NodeCheckInputs& inputs, const Kubepods* kubepods) {
  Grant grant{.what = "hierarchy"};
  if (kubepods == nullptr) {
    grant.grade = Grade::kMissing;
    grant.found = "no kubepods with a freezer below " +
                  (inputs.cgroup_root.empty() ? "any mounted hierarchy" : inputs.cgroup_root);
    grant.change =
        "in the chart agent.cgroupRoot, agent.cgroupDriver and agent.kubeletCgroupRoot must say "
        "where kubelet keeps its pods";
  } else if (kubepods->v2) {
    grant.found = "cgroup v2, " + kubepods->path;
  } else {
    grant.grade = Grade::kWeak;
    grant.found = "cgroup v1, " + kubepods->path;
    grant.change =
        "a frozen process of cgroup v1 cannot be killed, and CPU sets are not applied: boot with "
        "systemd.unified_cgroup_hierarchy=1";
  }
  return grant;
}

// kubelet's cgroupDriver is not asked of kubelet; the tree that it made shows it.
Grant check_driver(const std::vector<Kubepods>& found) {
  Grant grant{.what = "driver"};
  if (found.empty()) {
    grant = {.what = "driver", .grade = Grade::kMissing, .found = "not known"};
  } else {
    grant.found = found.front().systemd ? "systemd" : "cgroupfs";
  }
  if (found.size() > 1) {
    grant.grade = Grade::kWeak;
    grant.found = "both " + found[0].path + " and " + found[1].path + " exist";
    grant.change = "one of them is left from another cgroupDriver of kubelet: restart the node";
  }
  return grant;
}

// Root passes every permission check, so in practice this fails for a read-only mount (EROFS), a
// user namespace or SELinux.
// The file of kubepods itself is asked, which the agent never writes: a freeze there would stop all
// pods of the node. Those of pods have the same mount and the same owner.
Grant check_freezer(const Kubepods* kubepods) {
  Grant grant{.what = "freezer"};
  if (kubepods == nullptr) {
    return {.what = "freezer", .grade = Grade::kMissing, .found = "not found"};
  }
  if (::access(kubepods->freezer().c_str(), W_OK) == 0) {
    grant.found = "writable";
    return grant;
  }
  return {.what = "freezer",
          .grade = Grade::kMissing,
          .found = kubepods->freezer() + ": " + os::errno_text(errno),
          .change =
              "the agent must run as uid 0 with the hierarchy mounted writable; where "
              "SELinux enforces, agent.seLinuxOptions: {type: spc_t}"};
}

// Weak and not missing: gangs that share a node by cores still take turns, and what they lose is
// the binding. On v1 the file does not exist, and the answer is the same.
// cgroup.controllers lists what the cgroups above have enabled for this one.
Grant check_cpuset(const Kubepods* kubepods) {
  Grant grant{.what = "cpuset", .grade = Grade::kWeak, .found = "not there"};
  if (kubepods == nullptr) return grant;
  const base::Result<std::string> controllers =
      os::read_text_file(kubepods->path + "/cgroup.controllers", kControllersBytesMax);
  std::istringstream words{controllers ? *controllers : ""};
  for (std::string word; words >> word;) {
    if (word == "cpuset") return {.what = "cpuset", .found = "there"};
  }
  grant.change =
      "gangs that share a node by cores are not bound to their CPUs: enable the cpuset controller "
      "in cgroup.subtree_control of the root of cgroup v2";
  return grant;
}

// The journal is rewritten before a pod may be frozen, so a slow disk delays the first freeze of
// each pod.
// A journal on a disk would also outlive a reboot, which its boot ID makes harmless.
Grant check_run_directory(const std::string& path) {
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0 || ::access(path.c_str(), W_OK) != 0) {
    return {.what = "run directory",
            .grade = Grade::kMissing,
            .found = path + ": " + os::errno_text(errno),
            .change = "the journal needs a writable directory"};
  }
  Grant grant{.what = "run directory", .found = path};
  if (about.f_type != TMPFS_MAGIC) {
    grant.grade = Grade::kWeak;
    grant.found += ", not on tmpfs";
    grant.change = "on a disk the journal is as slow as the disk: put it on tmpfs";
  }
  return grant;
}

// Weak and not missing: an agent of the ordinary scheduling class switches too, only late while the
// node is busy.
Grant check_fifo(const NodeCheckInputs& inputs) {
  if (inputs.fifo) return {.what = "FIFO", .found = "granted"};
  return {.what = "FIFO",
          .grade = Grade::kWeak,
          .found = inputs.fifo_wanted ? "refused" : "not asked for",
          .change =
              "switches are late while the node is busy: agent.realtime, or, if the kernel "
              "refuses it to pods (RT_GROUP_SCHED), a CPU request of 500m or more in "
              "agent.resources"};
}

// A page fault in the switcher may wait for a disk, and with it every gang of the node. Weak: it
// does not happen while there is memory.
Grant check_memory(bool locked) {
  if (locked) return {.what = "locked memory", .found = "granted"};
  return {.what = "locked memory",
          .grade = Grade::kWeak,
          .found = "refused",
          .change =
              "switches are late while the node is short of memory: agent.realtime gives "
              "IPC_LOCK"};
}

// Weak and not missing: with fewer pods all is well. Those beyond cannot be opened, and run in all
// turns.
Grant check_open_files(std::uint64_t most) {
  Grant grant{.what = "open files", .found = std::to_string(most)};
  if (most >= kOpenFilesWanted) return grant;
  grant.grade = Grade::kWeak;
  const std::uint64_t pods = most < kOtherFilesMax ? 0 : (most - kOtherFilesMax) / kFilesPerPod;
  grant.change = "no more than " + std::to_string(pods) +
                 " pods of this node can take turns: raise the hard limit of open files that the "
                 "container runtime gives (LimitNOFILE of its service) to " +
                 std::to_string(kOpenFilesWanted);
  return grant;
}

// Weak and not missing: a single node switches well with any clock.
Grant check_clock(const ClockReading& clock) {
  if (!clock.synchronised) {
    return {.what = "clock",
            .grade = Grade::kWeak,
            .found = "not synchronized",
            .change = "nodes do not switch at the same instant: run chrony or another NTP client"};
  }
  // Rounded up: "within 0 ms" would promise too much.
  const std::int64_t millis = (clock.error_max.count() + 999) / 1000;
  return {.what = "clock", .found = "synchronized, within " + std::to_string(millis) + " ms"};
}

std::string_view to_string(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kWeak:
      return "weak";
    case Grade::kMissing:
      return "MISSING";
  }
  return "unknown";
}

}  // namespace

// If kubelet has two trees, the first is judged; check_driver() reports the other.
std::vector<Grant> check_node(const NodeCheckInputs& inputs) {
  const std::vector<Kubepods> found = find_kubepods(inputs);
  const Kubepods* first = found.empty() ? nullptr : &found.front();
  return {check_hierarchy(inputs, first),
          check_driver(found),
          check_freezer(first),
          check_cpuset(first),
          check_run_directory(inputs.run_directory),
          check_fifo(inputs),
          check_memory(inputs.memory_locked),
          check_open_files(inputs.open_files_max),
          check_clock(inputs.clock)};
}

// Weak grants make switches late or less safe; without a missing one there are none.
bool can_switch(const std::vector<Grant>& grants) {
  return std::none_of(grants.begin(), grants.end(),
                      [](const Grant& grant) { return grant.grade == Grade::kMissing; });
}

// For `kubegang-agent check`: a line for each grant, and below it, indented, what to change.
std::string format_grants(const std::vector<Grant>& grants) {
  // Wide enough for the longest of the names and grades above and two blanks.
  constexpr std::size_t kWhatWidth = 15;
  constexpr std::size_t kGradeWidth = 9;
  const auto cell = [](std::string_view text, std::size_t width) {
    return std::string{text} + std::string(std::max(width, text.size() + 1) - text.size(), ' ');
  };
  std::string text;
  for (const Grant& grant : grants) {
    text += cell(grant.what, kWhatWidth) + cell(to_string(grant.grade), kGradeWidth) + grant.found;
    text += "\n";
    if (!grant.change.empty()) text += std::string(kWhatWidth, ' ') + grant.change + "\n";
  }
  return text;
}

// Tries it and goes back at once: capabilities alone do not show it, since a kernel with
// RT_GROUP_SCHED refuses SCHED_FIFO to a cgroup without a share (freezer.md 2.2).
bool probe_fifo() {
  const sched_param fifo{.sched_priority = kLowestFifoPriority};
  if (::sched_setscheduler(0, SCHED_FIFO, &fifo) != 0) return false;
  const sched_param normal{.sched_priority = 0};
  ::sched_setscheduler(0, SCHED_OTHER, &normal);
  return true;
}

// As the worker does it (worker.cc, lock_memory).
bool probe_locked_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) return false;
  ::munlockall();
  return true;
}

}  // namespace agent
