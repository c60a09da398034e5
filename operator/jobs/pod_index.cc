#include "operator/jobs/pod_index.h"

#include "api/job.h"
#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"

namespace control {
namespace {

// A watch that works shows a new pod within a second or two. One that does not may be silent for
// far longer: behind a proxy a connection that is half open is noticed after two minutes
// (watch_idle_timeout), and the list that follows takes its time in a large cluster. So silence
// says nothing about a pod, and the API server is asked: one request in that time for each pod that
// no watch has shown.
constexpr base::Duration kUnseen = std::chrono::seconds{30};

}  // namespace

// The label counts on pods that the operator has made alone: others may have any label.
std::string record_key_of(const kube::Pod& pod) {
  std::string uid = job_uid_of(pod);
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  const auto label = pod.metadata.labels.find(std::string{kube::kLabelArrayTask});
  const bool is_task = label != pod.metadata.labels.end() && owner != nullptr && owner->uid == uid;
  return is_task ? uid + "/" + label->second : uid;
}

std::string job_uid_of(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  // A batch Job has the kind Job too, so the group of its API version decides.
  if (owner != nullptr && owner->kind == kube::Job::kResource.kind &&
      owner->api_version.starts_with(std::string{kube::kGroup} + "/")) {
    return owner->uid;
  }
  // A pod that others have made has another controller, and the label was written with its pin.
  const auto label = pod.metadata.labels.find(std::string{kube::kLabelJobUid});
  return label == pod.metadata.labels.end() ? "" : label->second;
}

PodIndex::Change PodIndex::observe(const kube::ObjectKey& key,
                                   const std::shared_ptr<const kube::Pod>& pod) {
  Change change;
  expected_.clear(key);
  if (const auto known = places_.extract(key)) change.before = std::move(known.mapped());
  if (pod == nullptr) return change;
  std::string uid = record_key_of(*pod);
  // A kubegang pod that kube-scheduler has yet to bind counts as there.
  auto node = uid.empty() ? pod->spec.node_name : node_of(*pod);
  // A pod that is not bound takes no part of any node.
  if (!node) return change;
  // Only the place of a foreign pod is kept: a cluster may have far more of them than pods of jobs.
  PodPlace place{std::move(*node), uid, uid.empty() ? nullptr : pod};
  change.after = places_.emplace(key, std::move(place)).first->second;
  return change;
}

void PodIndex::expect(const kube::ObjectKey& key, base::Instant now) {
  if (const PodPlace* place = find(key); place == nullptr || place->pod == nullptr) return;
  expected_.set(key, now + kUnseen);
}

std::vector<kube::ObjectKey> PodIndex::take_unseen(base::Instant now, std::size_t room) {
  std::vector<kube::ObjectKey> unseen = expected_.take_due(now, room);
  for (const kube::ObjectKey& key : unseen) expected_.set(key, now + kUnseen);
  return unseen;
}

const PodPlace* PodIndex::find(const kube::ObjectKey& key) const {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &found->second;
}

}  // namespace control
