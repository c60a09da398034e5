// What an answer to a write means for the parts.
#include <memory>
#include <type_traits>
#include <utility>

#include "operator/loop/control_loop.h"

namespace control {

// Whether the outcome shows that another leader has written.
template <typename T>
std::int64_t term_in(const StatusPatched<T>& outcome) {
  if constexpr (std::is_same_v<T, kube::Job>) {
    const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
    return newest.ok() ? newest->status.term.value_or(0) : 0;
  } else {
    return 0;
  }
}

void ControlLoop::count_end(WriteEnd end) {
  if (end == WriteEnd::kLostRace) ++counters_.conflicts;
  if (end == WriteEnd::kFailed) ++counters_.write_failures;
}

template <typename T>
void ControlLoop::answered(StatusPatched<T>&& outcome) {
  StatusMirror<T>* mirror = nullptr;
  if constexpr (std::is_same_v<T, kube::Job>) {
    if (JobRecord* job = jobs_.find(outcome.uid)) {
      mirror = &job->status;
      jobs_.touch(job->uid);
      statuses_.look_again(job->uid);
      // What waits for this job's commit points.
      for (const std::string& node : job->start.nodes) timetables_.look_again(node);
    }
  } else if constexpr (std::is_same_v<T, kube::BatchJob>) {
    mirror = adopted_.find_status(outcome.uid);
    adopted_.look_again(outcome.uid);
  } else {
    mirror = policy_.find_status<T>(outcome.key.name);
  }
  if (mirror == nullptr) return;
  // CEL has refused our write, or let one through that came later: in both cases another operator
  // leads, and this one must write nothing more.
  if (const std::int64_t term = term_in(outcome); term > term_) return be_fenced(term);
  const WriteEnd end = mirror->answered(outcome.result, outcome.fresh, now_);
  count_end(end);
  if (end == WriteEnd::kFailed) {
    report_.warn("status not written", "object=" + kube::to_string(mirror->key()) + " error=\"" +
                                           outcome.result.error().message + "\"");
  }
  if constexpr (std::is_same_v<T, kube::Job>) {
    // The answer to a patch is the whole object: the pod template that the informers drop comes
    // with it.
    if (outcome.result.ok()) pod_writes_.keep_template(*outcome.result);
  }
}

template void ControlLoop::answered(StatusPatched<kube::Partition>&&);
template void ControlLoop::answered(StatusPatched<kube::Qos>&&);
template void ControlLoop::answered(StatusPatched<kube::Account>&&);
template void ControlLoop::answered(StatusPatched<kube::SchedulerConfig>&&);
template void ControlLoop::answered(StatusPatched<kube::Job>&&);
template void ControlLoop::answered(StatusPatched<kube::BatchJob>&&);

void ControlLoop::answered(TimetablePut&& outcome) {
  const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
  if (newest.ok() && newest->spec.term > term_) return be_fenced(newest->spec.term);
  const std::string node = outcome.node;
  count_end(timetables_.answered(std::move(outcome), now_));
  for (const std::string& uid : nodes_.jobs_on(node)) jobs_.touch(uid);
}

void ControlLoop::answered(TimetableDeleted&& outcome) {
  const std::string node = outcome.node;
  timetables_.answered(outcome, now_);
  for (const std::string& uid : nodes_.jobs_on(node)) jobs_.touch(uid);
}

void ControlLoop::answered(UsagePut&& outcome) {
  const WriteEnd end = usage_.answered(outcome, now_);
  count_end(end);
  if (end == WriteEnd::kFailed) {
    report_.warn("usage not written", "error=\"" + outcome.result.error().message + "\"");
  }
}

void ControlLoop::answered(PodCreated&& outcome) {
  if (auto undo = pod_writes_.answered(outcome)) {
    return gangs_.undo_start(*jobs_.find(outcome.job_uid), std::move(*undo));
  }
  // What was made is known now, not only when the watch tells.
  const JobRecord* job = jobs_.peek(outcome.job_uid);
  const bool is_ours = job != nullptr && outcome.was_built && outcome.result.ok() &&
                       job_uid_of(*outcome.result) == outcome.job_uid &&
                       job->wanted().starts.value_or(0) == outcome.starts;
  // An answer that the watch has overtaken must not put an older state back.
  if (!is_ours || job->pods.contains(outcome.slot.name)) return;
  const kube::ObjectKey key = kube::key_of(outcome.result->metadata);
  index_pod(key, std::make_shared<const kube::Pod>(std::move(*outcome.result)));
}

void ControlLoop::answered(PodPinned&& outcome) {
  pod_writes_.answered(outcome);
  // Known before the watch tells, as with a pod that we have made.
  const JobRecord* job = jobs_.peek(outcome.job_uid);
  if (job == nullptr || outcome.is_gone || !outcome.result.ok()) return;
  if (job->pods.contains(outcome.slot.name)) return;
  const kube::ObjectKey key = kube::key_of(outcome.result->metadata);
  index_pod(key, std::make_shared<const kube::Pod>(std::move(*outcome.result)));
}

void ControlLoop::answered(PodNoted&& outcome) {
  if (outcome.job_uid.empty()) return gated_.answered(outcome, now_);
  notes_.answered(outcome, now_);
}

void ControlLoop::answered(JobCreated&& outcome) {
  if (outcome.owner_uid.empty()) return gated_.answered(outcome, now_);
  adopted_.answered(outcome, now_);
}

void ControlLoop::answered(IdsReserved&& outcome) {
  for (const std::string& uid : numbers_.answered(outcome, now_)) jobs_.touch(uid);
  // What is stored now, as if a watch had told it.
  const auto saw = [this](const kube::SchedulerConfig& object) {
    inbox_.changed<kube::SchedulerConfig>(std::make_shared<const kube::SchedulerConfig>(object));
  };
  if (outcome.result.ok()) {
    saw(*outcome.result);
    auto* config = policy_.find_status<kube::SchedulerConfig>(outcome.result->metadata.name);
    if (config != nullptr) config->wanted().next_job_id = outcome.end;
    return;
  }
  ++counters_.write_failures;
  report_.warn("job numbers not reserved", "error=\"" + outcome.result.error().message + "\"");
  if (outcome.fresh) saw(*outcome.fresh);
}

void ControlLoop::answered(TaintsSet&& outcome) {
  taints_.answered(outcome, now_);
  if (outcome.result.ok()) {
    inbox_.changed<kube::Node>(std::make_shared<const kube::Node>(std::move(*outcome.result)));
    return;
  }
  if (outcome.result.error().code == base::Code::kConflict) return;
  ++counters_.write_failures;
  report_.warn("node's taint not written",
               "node=" + outcome.node + " error=\"" + outcome.result.error().message + "\"");
}

void ControlLoop::answered(JobDeleted&& outcome) {
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  ++counters_.write_failures;
  report_.warn("job not deleted", "job=" + kube::to_string(outcome.key) + " error=\"" +
                                      outcome.status.error().message + "\"");
}

}  // namespace control
