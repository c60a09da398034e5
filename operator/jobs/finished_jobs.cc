// Jobs that have ended: their objects stay until somebody or their time to live deletes them. There
// are thousands of them, so nothing that happens to others looks at them again, and once nothing is
// left to be said of one, its object is all that is kept (Finished).
#include <algorithm>
#include <optional>
#include <utility>

#include "operator/loop/control_loop.h"
#include "operator/translate/job_check.h"

namespace control {
namespace {

// When its time to live is over; nothing while it has none.
std::optional<base::Instant> end_of_life(const kube::JobSpec& spec, const kube::JobStatus& status) {
  if (!spec.lifecycle.ttl_after_finished || !status.end_time) return std::nullopt;
  return *status.end_time + *spec.lifecycle.ttl_after_finished;
}

// The object says all that the record knows: a new leader, who has nothing else, would do the same.
bool says_it_all(const JobRecord& job) {
  const StatusMirror<kube::Job>& status = job.status;
  const bool is_written =
      status.urgency() == WriteUrgency::kClean && !status.is_in_flight() && status.exists();
  return is_written && !job.judge_again && !job.start.launching && job.start.creating.empty() &&
         job.object->metadata.resource_version == status.version() &&
         job.object->status == status.stored() && job.object->spec == job.basis;
}

}  // namespace

void ControlLoop::reconcile_finished(JobRecord& job) {
  leave_scheduler(job);
  judge_finished(job);
  check_ttl(job);
  if (says_it_all(job)) put_away(job);  // `job` is gone now
}

void ControlLoop::leave_scheduler(JobRecord& job) {
  unfinished_.erase(job.uid);
  if (std::exchange(job.submitted, false)) tell(sched::Forget{job.id});
}

// Nothing can be asked of a job that has ended; what cannot be taken back is said all the same.
void ControlLoop::judge_finished(JobRecord& job) {
  if (!std::exchange(job.judge_again, false)) return;
  const auto changes = check_change(job.basis, job.object->spec, false);
  if (!changes.empty()) return refuse_change(job, changes);
  job.basis = job.object->spec;
}

void ControlLoop::check_ttl(JobRecord& job) {
  const auto at = end_of_life(job.object->spec, job.wanted());
  if (!at) return;
  if (*at > now_) return set_timer(job, *at);
  set_timer(job, now_ + std::chrono::minutes{1});  // should the deletion fail
  log("job is deleted after its time to live", "job=" + kube::to_string(job.key));
  write(DeleteJob{job.key, job.uid});
}

void ControlLoop::answered(JobDeleted&& outcome) {
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  ++counters_.write_failures;
  warn("job not deleted",
       "job=" + kube::to_string(outcome.key) + " error=\"" + outcome.status.error().message + "\"");
}

void ControlLoop::put_away(JobRecord& job) {
  const std::string uid = job.uid;
  finished_[uid] = {job.object, job.arrival, job.id, job.timer};
  templates_.forget(uid);
  uid_by_id_.erase(job.id);
  status_jobs_.erase(uid);
  jobs_.erase(uid);  // `job` is gone now
}

// As put_away leaves one that has just been heard of.
void ControlLoop::keep_finished(const std::shared_ptr<const kube::Job>& object, sched::JobId id) {
  Finished& finished = finished_[object->metadata.uid];
  finished = {object, arrivals_, id, base::kNever};
  if (const auto at = end_of_life(object->spec, object->status)) {
    finished.timer = std::max(*at, now_);
    timers_.emplace(finished.timer, object->metadata.uid);
  }
}

// Its record as it was, to be put away again when it has been looked at.
JobRecord* ControlLoop::take_out(const std::string& uid) {
  const auto found = finished_.find(uid);
  if (found == finished_.end()) return nullptr;
  const Finished finished = std::move(found->second);
  finished_.erase(found);
  JobRecord& job = make_record(finished.object, finished.arrival, finished.id);
  job.judge_again = false;
  job.timer = finished.timer;
  const std::string prefix = job.key.name + "-";
  for (auto pod = pods_.lower_bound({job.key.ns, prefix});
       pod != pods_.end() && pod->first.ns == job.key.ns && pod->first.name.starts_with(prefix);
       ++pod) {
    if (pod->second.job_uid == uid) job.put_pod(pod->first.name, pod->second.pod);
  }
  touch(job.uid);
  return &job;
}

}  // namespace control
