#include "operator/nodes/orphan_pods.h"

#include "api/array_status.h"
#include "api/wellknown.h"
#include "operator/gang/ending_time.h"
#include "operator/gang/gang_observation.h"
#include "operator/jobs/pod_index.h"
#include "translation/task_key.h"

namespace control {
namespace {

constexpr base::Duration kOrphanRetry = std::chrono::seconds{5};

// Returns true if nothing of the pod's job, or of its task of an array, may run, as is stored. A
// task without an entry has no start: it has ended, or waits.
bool has_no_start(const kube::Job& job, const kube::Pod& pod) {
  const kube::JobStatus& status = job.status;
  if (status.state && kube::is_final(*status.state)) return true;
  const std::optional<int> task = job.spec.array ? task_in(record_key_of(pod)) : std::nullopt;
  return task && !kube::stored_task(status, *task).starts;
}

}  // namespace

// The garbage collector deletes a pod with the pod's own grace period, which is unchecked.
std::optional<kube::ObjectKey> job_to_ask_for(const kube::Pod& pod, std::chrono::seconds longest) {
  const std::string uid = job_uid_of(pod);
  if (uid.empty() || is_finished(pod) || is_ending_within(pod, longest)) return std::nullopt;
  const std::string& ns = pod.metadata.ns;
  if (!is_made_by_others(pod)) return kube::ObjectKey{ns, kube::controller_of(pod.metadata)->name};
  const auto label = pod.metadata.labels.find(std::string{kube::kLabelJob});
  // Without the label there is no name to ask for. No Job is named like a UID, so the answer is
  // NotFound and the pod counts as an orphan.
  return kube::ObjectKey{ns, label == pod.metadata.labels.end() ? uid : label->second};
}

// No pod may run of a Job that has ended, as stored.
bool is_orphan(const kube::Pod& pod, const base::Result<kube::Job>& job) {
  if (!job.ok()) return job.error().code == base::Code::kNotFound;
  return job->metadata.uid != job_uid_of(pod) || has_no_start(*job, pod);
}

bool is_made_by_others(const kube::Pod& pod) {
  const kube::OwnerReference* owner = kube::controller_of(pod.metadata);
  return owner == nullptr || owner->uid != job_uid_of(pod);
}

std::vector<DeleteOrphan> OrphanPods::due(base::Instant now, std::chrono::seconds longest,
                                          std::size_t room) {
  std::vector<DeleteOrphan> effects;
  for (const kube::ObjectKey& pod : tries_.take_due(now, room)) {
    // The pod leaves the list when its watch shows that it is gone, or when its Job is known; the
    // outcome of a try is not reported.
    tries_.set(pod, now + kOrphanRetry);
    effects.push_back({pod, longest});
  }
  return effects;
}

base::Instant OrphanPods::next_due(base::Instant now) const {
  return tries_.next_after(now).value_or(base::kNever);
}

}  // namespace control
