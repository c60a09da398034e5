// How the policy gets at a pod's cgroup: its freezer, and its set of CPUs.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kube/api/pod.h"
#include "node-agent/freezer/cpuset_file.h"
#include "node-agent/freezer/freezer.h"
#include "node-agent/freezer/pod_cgroups.h"

namespace agent {

inline const std::string kConmonInPod =
    "CRI-O keeps its monitor in the pod's cgroup, where it would be frozen with the pod: give "
    "CRI-O "
    "cgroup_manager = \"systemd\" and conmon_cgroup = \"system.slice\"; found ";

// Finds a pod's cgroup and opens its freezer. The real one is below, the fake testing/fake_node.h.
class PodOpener {
 public:
  struct Opened {
    std::string path;
    std::shared_ptr<Freezer> freezer;
    std::string never_freeze{};  // why this pod must not be frozen; "" = it may be
  };
  virtual ~PodOpener() = default;
  // kNotFound: not there (yet, or no longer).
  virtual base::Result<Opened> open(const std::string& uid, kube::QosClass qos) = 0;
  virtual base::Result<Opened> open_at(const std::string& path, const std::string& uid) = 0;
  // Binds the pod to the CPUs, see cpuset_file.h; "" = takes the binding back. kNotFound as above.
  virtual base::Status bind(const std::string& uid, kube::QosClass qos,
                            const std::string& cpus) = 0;
};

// Opens pods in the cgroup tree of this machine.
class CgroupPodOpener final : public PodOpener {
 public:
  explicit CgroupPodOpener(const PodCgroups& cgroups) : cgroups_{cgroups} {}

  base::Result<Opened> open(const std::string& uid, kube::QosClass qos) override {
    return opened(cgroups_.find(uid, qos));
  }
  base::Result<Opened> open_at(const std::string& path, const std::string& uid) override {
    return opened(cgroups_.at(path, uid));
  }
  base::Status bind(const std::string& uid, kube::QosClass qos, const std::string& cpus) override {
    const base::Result<PodCgroup> cgroup = cgroups_.find(uid, qos);
    if (!cgroup) return cgroup.error();
    return cpus.empty() ? unbind(*cgroup) : bind_to_cpus(*cgroup, cpus);
  }

 private:
  static base::Result<Opened> opened(const base::Result<PodCgroup>& cgroup) {
    if (!cgroup) return cgroup.error();
    base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    if (!freezer) return freezer.error();
    const std::string runtime = runtime_cgroup_in(*cgroup);
    return Opened{.path = cgroup->path,
                  .freezer = *std::move(freezer),
                  .never_freeze = runtime.empty() ? "" : kConmonInPod + runtime};
  }

  const PodCgroups& cgroups_;
};

}  // namespace agent
