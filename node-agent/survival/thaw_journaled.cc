#include "node-agent/survival/thaw_journaled.h"

namespace agent {

// Writes to every pod, frozen or not: reading first would save nothing, and
// a pod could be frozen between the read and the decision. One pod that fails does not stop the
// others.
ThawResult thaw_journaled(const std::vector<PodIdentity>& pods, const PodCgroups& cgroups) {
  ThawResult result;
  for (const PodIdentity& pod : pods) {
    const base::Result<PodCgroup> cgroup = cgroups.at(pod.path, pod.uid);
    if (!cgroup) {
      if (cgroup.error().code == base::Code::kNotFound) {
        ++result.gone_count;
      } else {
        result.failed.push_back({pod, cgroup.error().message});
      }
      continue;
    }
    const base::Result<std::unique_ptr<Freezer>> freezer = open_freezer(*cgroup);
    const IoResult written =
        freezer ? (*freezer)->request(FreezeRequest::kThawed) : IoResult::kFailed;
    if (written == IoResult::kGone || (!freezer && freezer.error().code == base::Code::kNotFound)) {
      ++result.gone_count;
    } else if (written != IoResult::kOk) {
      result.failed.push_back(
          {pod, freezer ? std::string{to_string(written)} : freezer.error().message});
      // The write was taken and the pod still stands: the kernel has not finished, or an ancestor
      // is frozen. The caller tries again.
    } else if ((*freezer)->observe().frozen) {
      result.failed.push_back({pod, "still frozen"});
    } else {
      ++result.thawed_count;
    }
  }
  return result;
}

}  // namespace agent
