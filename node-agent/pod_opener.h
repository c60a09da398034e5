// Opens pods in the cgroup tree of this machine.
#pragma once

#include "node-agent/cpuset_file.h"
#include "node-agent/keeper.h"
#include "node-agent/pod_cgroups.h"

namespace agent {

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
    return bind_to_cpus(*cgroup, cpus);
  }

 private:
  static base::Result<Opened> opened(const base::Result<PodCgroup>& cgroup) {
    if (!cgroup) return cgroup.error();
    base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    if (!freezer) return freezer.error();
    return Opened{.path = cgroup->path, .freezer = *std::move(freezer)};
  }

  const PodCgroups& cgroups_;
};

}  // namespace agent
