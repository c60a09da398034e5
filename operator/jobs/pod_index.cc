#include "operator/jobs/pod_index.h"

#include "api/job.h"
#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"

namespace control {

std::string job_uid_of(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  // A batch Job is of the kind Job too, so the group of its API version decides.
  if (owner != nullptr && owner->kind == kube::Job::kResource.kind &&
      owner->api_version.starts_with(std::string{kube::kGroup} + "/")) {
    return owner->uid;
  }
  const auto label = pod.metadata.labels.find(std::string{kube::kLabelJobUid});
  return label == pod.metadata.labels.end() ? "" : label->second;
}

PodIndex::Change PodIndex::observe(const kube::ObjectKey& key,
                                   const std::shared_ptr<const kube::Pod>& pod) {
  Change change;
  if (const auto known = places_.extract(key)) change.before = std::move(known.mapped());
  if (pod == nullptr) return change;
  std::string uid = job_uid_of(*pod);
  // One of ours that kube-scheduler has yet to bind is there already.
  auto node = uid.empty() ? pod->spec.node_name : node_of(*pod);
  // A pod that is not bound takes no part of any node.
  if (!node) return change;
  PodPlace place{std::move(*node), uid, uid.empty() ? nullptr : pod};
  change.after = places_.emplace(key, std::move(place)).first->second;
  return change;
}

}  // namespace control
