// Statuses: base states and commit points at once, what only informs within its budget.
#include <algorithm>
#include <type_traits>

#include "api/wellknown.h"
#include "operator/loop/control_loop.h"

namespace control {
namespace {

constexpr double kInformingPerSecond = 20;
constexpr double kInformingPerSecondWhenBusy = 2;  // while starts and ends wait for their turn
constexpr base::Duration kInformingPeriod = std::chrono::minutes{1};  // of one object

// Which commit point a status write is, for crash tests and logs.
std::string point_of(const JobRecord& job) {
  if (job.status.urgency != WriteUrgency::kCommit) return "status";
  const kube::JobStatus& wanted = job.wanted();
  if (job.is_final()) return "final";
  if (!job.is_allocated()) return wanted.claim ? "claim" : "requeued";
  if (wanted.ending) return "ending";
  return kube::is_true(wanted.conditions, kube::kReady) ? "ready" : "start";
}

}  // namespace

void ControlLoop::write_due_statuses() {
  for (auto it = status_jobs_.begin(); it != status_jobs_.end();) {
    JobRecord* job = find_job(*it);
    if (job != nullptr && job->status.gone) job->status.urgency = WriteUrgency::kClean;
    // Of a write under way its end is heard (job_mirror). So what is looked at here in each step is
    // what has to be written now, however many jobs wait.
    if (job == nullptr || job->status.is_flying() ||
        job->status.urgency <= WriteUrgency::kInforms) {
      if (job != nullptr && !job->status.is_flying() &&
          job->status.urgency == WriteUrgency::kInforms) {
        queue_informing(*job);
      }
      it = status_jobs_.erase(it);
      continue;
    }
    ++it;
    if (job->status.retry_at > now_) continue;
    if (job->commit_after) {
      const JobRecord* first = find_job(*job->commit_after);
      if (first != nullptr && first->status.is_uncommitted()) continue;
      job->commit_after.reset();
    }
    write_job_status(*job);
  }
  for (auto& [name, mirror] : partition_status_) {
    if (mirror.urgency > WriteUrgency::kInforms) {
      write_status<kube::Partition>("partition-status", name, mirror,
                                    &ControlLoop::partition_mirror);
    }
  }
  for (auto& [name, mirror] : qos_status_) {
    if (mirror.urgency > WriteUrgency::kInforms) {
      write_status<kube::Qos>("qos-status", name, mirror, &ControlLoop::qos_mirror);
    }
  }
  if (config_status_.urgency > WriteUrgency::kInforms) {
    write_status<kube::SchedulerConfig>("config-status", std::string{kube::kSchedulerConfigName},
                                        config_status_, &ControlLoop::config_mirror);
  }
  for (auto& [name, mirror] : other_config_status_) {
    if (mirror.urgency > WriteUrgency::kInforms) {
      write_status<kube::SchedulerConfig>("config-status", name, mirror,
                                          &ControlLoop::config_mirror);
    }
  }
}

void ControlLoop::write_job_status(JobRecord& job) {
  job.wanted().term = term_;
  write_status<kube::Job>(point_of(job), job.uid, job.status, &ControlLoop::job_mirror);
}

// Writes that only inform share a budget, the head of the queue first, each object once a minute.
void ControlLoop::write_due_informing() {
  const auto passed = std::chrono::duration<double>(now_ - tokens_at_).count();
  const double rate = writes_wait() ? kInformingPerSecondWhenBusy : kInformingPerSecond;
  tokens_ = std::min(rate, tokens_ + passed * rate);
  tokens_at_ = now_;
  const auto is_due = [&](const auto& mirror) {
    return mirror.urgency == WriteUrgency::kInforms && !mirror.is_flying() && !mirror.gone &&
           mirror.retry_at <= now_ && mirror.informed_at + kInformingPeriod <= now_;
  };
  for (auto& [name, mirror] : partition_status_) {
    if (tokens_ < 1 || !is_due(mirror)) continue;
    tokens_ -= 1;
    write_status<kube::Partition>("partition-status", name, mirror, &ControlLoop::partition_mirror);
  }
  for (auto& [name, mirror] : qos_status_) {
    if (tokens_ < 1 || !is_due(mirror)) continue;
    tokens_ -= 1;
    write_status<kube::Qos>("qos-status", name, mirror, &ControlLoop::qos_mirror);
  }
  try_due_pods();
  while (!informing_later_.empty() && informing_later_.begin()->first <= now_) {
    const JobRecord* job = find_job(informing_later_.begin()->second);
    informing_later_.erase(informing_later_.begin());
    if (job != nullptr) queue_informing(*job);
  }
  while (tokens_ >= 1 && !informing_.empty()) {
    JobRecord* job = find_job(informing_.begin()->uid);
    informing_.erase(informing_.begin());
    if (job == nullptr || !is_due(job->status)) continue;  // said meanwhile, or later
    tokens_ -= 1;
    write_job_status(*job);
  }
}

void ControlLoop::queue_informing(const JobRecord& job) {
  const StatusMirror<kube::Job>& status = job.status;
  const base::Instant at = std::max(status.retry_at, status.informed_at + kInformingPeriod);
  if (at <= now_) {
    informing_.insert({job.wanted().priority.value_or(0), job.id, job.uid});
  } else {
    informing_later_.emplace(at, job.uid);
  }
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
    job->status.mark(WriteUrgency::kInforms);
    status_jobs_.insert(uid);
  }
}

// The newest stored version, as the informer saw it.
void ControlLoop::observe_stored(JobRecord& job, const kube::Job& object) {
  StatusMirror<kube::Job>& mirror = job.status;
  if (mirror.is_flying() ||
      !is_newer_version(object.metadata.resource_version, mirror.metadata.resource_version)) {
    return;
  }
  if (object.status.term.value_or(0) > term_) return be_fenced(*object.status.term);
  mirror.metadata.resource_version = object.metadata.resource_version;
  if (mirror.stored == object.status) return;
  // Somebody else changed the status: ours is written again.
  mirror.stored = object.status;
  mirror.mark(WriteUrgency::kUrgent);
  status_jobs_.insert(job.uid);
}

template <typename T>
void ControlLoop::write_status(std::string point, const std::string& name, StatusMirror<T>& mirror,
                               FindMirror<T> find) {
  if (mirror.is_flying() || mirror.gone || mirror.retry_at > now_) return;
  if (mirror.urgency == WriteUrgency::kInforms) mirror.informed_at = now_;
  mirror.flying = std::exchange(mirror.urgency, WriteUrgency::kClean);
  ++counters_.status_writes;
  T from;
  from.metadata = mirror.metadata;
  from.status = mirror.stored;
  T to = from;
  to.status = mirror.wanted;
  writer_.submit(
      {.point = std::move(point),
       .run = [this, client = client_, from = std::move(from), to = std::move(to), name, find] {
         auto result = std::make_shared<base::Result<T>>(client.patch_status_from(from, to));
         auto fresh = std::make_shared<base::Result<T>>(base::Error{});
         if (!result->ok() && result->error().code == base::Code::kConflict) {
           *fresh = client.get<T>(kube::key_of(from.metadata));
         }
         return [this, name, find, result, fresh] {
           if (StatusMirror<T>* known = (this->*find)(name)) {
             on_status_written(*known, *result, *fresh);
           }
           if constexpr (std::is_same_v<T, kube::Job>) {
             if (result->ok()) keep_template(name, **result);
           }
         };
       }});
}

template <typename T>
void ControlLoop::on_status_written(StatusMirror<T>& mirror, const base::Result<T>& result,
                                    const base::Result<T>& fresh) {
  const WriteUrgency flown = std::exchange(mirror.flying, WriteUrgency::kClean);
  const T* newest = result.ok() ? &*result : fresh.ok() ? &*fresh : nullptr;
  if constexpr (std::is_same_v<T, kube::Job>) {
    if (newest != nullptr && newest->status.term.value_or(0) > term_) {
      return be_fenced(*newest->status.term);
    }
  }
  if (newest != nullptr && newest->metadata.uid == mirror.metadata.uid) {
    mirror.metadata.resource_version = newest->metadata.resource_version;
    mirror.stored = newest->status;
  } else if (newest != nullptr || (!result.ok() && result.error().code == base::Code::kNotFound) ||
             (!fresh.ok() && fresh.error().code == base::Code::kNotFound)) {
    mirror.gone = true;  // deleted; another object may bear its name by now
  }
  if (result.ok()) {
    mirror.failures = 0;
    return;
  }
  mirror.mark(flown);
  if (result.error().code == base::Code::kConflict) {
    ++counters_.conflicts;
    if (newest != nullptr) return;
  }
  if (mirror.gone) return;
  ++counters_.write_failures;
  mirror.retry_at = now_ + retry_delay(++mirror.failures);
  warn("status not written", "object=" + kube::to_string(kube::key_of(mirror.metadata)) +
                                 " error=\"" + result.error().message + "\"");
}

// Also wakes what waits for this job's commit points.
StatusMirror<kube::Job>* ControlLoop::job_mirror(const std::string& uid) {
  JobRecord* job = find_job(uid);
  if (job == nullptr) return nullptr;
  touch(uid);
  status_jobs_.insert(uid);
  for (const std::string& node : job->nodes) dirty_nodes_.insert(node);
  return &job->status;
}

StatusMirror<kube::Partition>* ControlLoop::partition_mirror(const std::string& name) {
  const auto found = partition_status_.find(name);
  return found == partition_status_.end() ? nullptr : &found->second;
}

StatusMirror<kube::Qos>* ControlLoop::qos_mirror(const std::string& name) {
  const auto found = qos_status_.find(name);
  return found == qos_status_.end() ? nullptr : &found->second;
}

StatusMirror<kube::SchedulerConfig>* ControlLoop::config_mirror(const std::string& name) {
  if (name == kube::kSchedulerConfigName) return &config_status_;
  const auto found = other_config_status_.find(name);
  return found == other_config_status_.end() ? nullptr : &found->second;
}

}  // namespace control
