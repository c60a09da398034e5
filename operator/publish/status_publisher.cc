// Statuses: base states and commit points at once, what only informs within its budget.
#include <algorithm>
#include <type_traits>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

WritePoint status_point(const JobRecord& job) {
  if (job.status.urgency() != WriteUrgency::kCommit) return WritePoint::kStatus;
  const kube::JobStatus& wanted = job.wanted();
  if (job.is_final()) return WritePoint::kFinal;
  if (!job.is_allocated()) return wanted.claim ? WritePoint::kClaim : WritePoint::kRequeued;
  if (wanted.ending) return WritePoint::kEnding;
  return kube::is_true(wanted.conditions, kube::kReady) ? WritePoint::kReady : WritePoint::kStart;
}

}  // namespace

void ControlLoop::write_due_statuses() {
  for (auto it = status_jobs_.begin(); it != status_jobs_.end();) {
    JobRecord* job = find_job(*it);
    // Of a write under way its outcome is heard. So what is looked at here in each step is
    // what has to be written now, however many jobs wait.
    const bool waits = job != nullptr && job->status.exists() && !job->status.is_in_flight();
    if (!waits || job->status.urgency() <= WriteUrgency::kInforms) {
      if (waits && job->status.urgency() == WriteUrgency::kInforms) queue_informing(*job);
      it = status_jobs_.erase(it);
      continue;
    }
    ++it;
    if (!job->status.may_write(now_)) continue;
    if (job->start.commit_after) {
      const JobRecord* first = find_job(*job->start.commit_after);
      if (first != nullptr && !gate_.may_write_ending(first->uid)) continue;
      job->start.commit_after.reset();
    }
    write_job_status(*job);
  }
  policy_.for_each_status([this](WritePoint point, auto& mirror) {
    if (mirror.urgency() > WriteUrgency::kInforms) write_status(point, mirror);
  });
}

void ControlLoop::write_job_status(JobRecord& job) {
  job.wanted().term = term_;
  write_status(status_point(job), job.status);
}

// Writes that only inform share a budget, the head of the queue first, each object once a minute.
void ControlLoop::write_due_informing() {
  inform_.refill(now_, writes_wait());
  const auto is_due = [&](const auto& mirror) {
    return mirror.urgency() == WriteUrgency::kInforms && mirror.may_write(now_) &&
           mirror.informed_at() + InformBudget::kObjectPeriod <= now_;
  };
  policy_.for_each_status([&](WritePoint point, auto& mirror) {
    if (!inform_.has_one() || !is_due(mirror)) return;
    inform_.spend_one();
    write_status(point, mirror);
  });
  try_due_pods();
  while (const auto uid = inform_.take_later(now_)) {
    const JobRecord* job = find_job(*uid);
    if (job != nullptr && !job->status.is_in_flight()) queue_informing(*job);
  }
  while (inform_.has_one()) {
    const auto uid = inform_.take_first();
    if (!uid) return;
    JobRecord* job = find_job(*uid);
    if (job == nullptr || !is_due(job->status)) continue;  // said meanwhile, or later
    inform_.spend_one();
    write_job_status(*job);
  }
}

void ControlLoop::queue_informing(const JobRecord& job) {
  const StatusMirror<kube::Job>& status = job.status;
  inform_.queue({job.wanted().priority.value_or(0), job.id, job.uid},
                std::max(status.due(), status.informed_at() + InformBudget::kObjectPeriod), now_);
}

// Once a minute: run times and the state that follows the slices, of jobs that run.
void ControlLoop::refresh_running() {
  if (refreshed_at_ + kRefreshPeriod > now_) return;
  refreshed_at_ = now_;
  for (const auto& [uid, job] : unfinished_) {
    if (!job->is_allocated() || !job->submitted || job->deleted || job->wanted().ending) continue;
    const auto view = scheduler_.job(job->id, now_);
    if (!view || !view->ready) continue;
    if (view->run_time ==
        (job->wanted().run_time ? job->wanted().run_time->elapsed : base::Duration{-1})) {
      continue;
    }
    show_times(*job);
    mark(*job, WriteUrgency::kInforms);
  }
}

// The newest stored version, as the informer saw it.
void ControlLoop::observe_stored(JobRecord& job, const kube::Job& object) {
  if (!job.status.is_news(object)) return;
  if (object.status.term.value_or(0) > term_) return be_fenced(*object.status.term);
  // Another writer changed the status: ours is written again.
  if (job.status.saw(object)) mark(job, WriteUrgency::kUrgent);
}

template <typename T>
void ControlLoop::write_status(WritePoint point, StatusMirror<T>& mirror) {
  if (!mirror.may_write(now_)) return;
  mirror.begin(now_);
  ++counters_.status_writes;
  write(PatchStatus<T>{point, mirror.object_with(mirror.stored()),
                       mirror.object_with(mirror.wanted())});
}

template <typename T>
void ControlLoop::answered(StatusPatched<T>&& outcome) {
  StatusMirror<T>* mirror = nullptr;
  if constexpr (std::is_same_v<T, kube::Job>) {
    mirror = mirror_of_job(outcome.uid);
  } else {
    mirror = policy_.find_status<T>(outcome.key.name);
  }
  if (mirror != nullptr) on_status_written(*mirror, outcome.result, outcome.fresh);
  if constexpr (std::is_same_v<T, kube::Job>) {
    if (outcome.result.ok()) keep_template(outcome.uid, *outcome.result);
  }
}
template void ControlLoop::answered(StatusPatched<kube::Job>&& outcome);
template void ControlLoop::answered(StatusPatched<kube::Partition>&& outcome);
template void ControlLoop::answered(StatusPatched<kube::Qos>&& outcome);
template void ControlLoop::answered(StatusPatched<kube::SchedulerConfig>&& outcome);

template <typename T>
void ControlLoop::on_status_written(StatusMirror<T>& mirror, const base::Result<T>& result,
                                    const base::Result<T>& fresh) {
  if constexpr (std::is_same_v<T, kube::Job>) {
    const auto& newest = result.ok() ? result : fresh;
    if (newest.ok() && newest->status.term.value_or(0) > term_) {
      return be_fenced(*newest->status.term);
    }
  }
  switch (mirror.answered(result, fresh, now_)) {
    case WriteEnd::kStored:
    case WriteEnd::kGone:
      return;
    case WriteEnd::kLostRace:
      ++counters_.conflicts;
      return;
    case WriteEnd::kFailed:
      ++counters_.write_failures;
      warn("status not written",
           "object=" + kube::to_string(mirror.key()) + " error=\"" + result.error().message + "\"");
  }
}

// Also wakes what waits for this job's commit points.
StatusMirror<kube::Job>* ControlLoop::mirror_of_job(const std::string& uid) {
  JobRecord* job = find_job(uid);
  if (job == nullptr) return nullptr;
  touch(job->uid);
  status_jobs_.insert(job->uid);
  for (const std::string& node : job->start.nodes) timetables_.look_again(node);
  return &job->status;
}

}  // namespace control
