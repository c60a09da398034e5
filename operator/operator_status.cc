// Statuses: base states and commit points at once, what only informs within its budget.
#include <algorithm>
#include <type_traits>

#include "api/wellknown.h"
#include "operator/operator.h"

namespace control {
namespace {

constexpr double kInformingPerSecond = 20;
constexpr double kInformingPerSecondWhenBusy = 2;  // while starts and ends wait for their turn
constexpr base::Duration kInformingPeriod = std::chrono::minutes{1};  // of one object

// Which commit point a status write is, for crash tests and logs.
std::string point_of(const JobRecord& job) {
  if (job.status.dirt != Dirt::kCommit) return "status";
  const kube::JobStatus& wanted = job.wanted();
  if (job.is_final()) return "final";
  if (!job.is_allocated()) return wanted.claim ? "claim" : "requeued";
  if (wanted.ending) return "ending";
  return kube::is_true(wanted.conditions, kube::kReady) ? "ready" : "start";
}

}  // namespace

void Operator::pump_statuses() {
  for (auto it = status_jobs_.begin(); it != status_jobs_.end();) {
    JobRecord* job = find_job(*it);
    if (job != nullptr && job->status.gone) job->status.dirt = Dirt::kClean;
    // Of a write under way its end is heard (job_keeper). So what is looked at here in each step is
    // what has to be written now, however many jobs wait.
    if (job == nullptr || job->status.is_flying() || job->status.dirt <= Dirt::kInforms) {
      if (job != nullptr && !job->status.is_flying() && job->status.dirt == Dirt::kInforms) {
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
  for (auto& [name, keeper] : partition_status_) {
    if (keeper.dirt > Dirt::kInforms) {
      write_status<kube::Partition>("partition-status", name, keeper, &Operator::partition_keeper);
    }
  }
  for (auto& [name, keeper] : qos_status_) {
    if (keeper.dirt > Dirt::kInforms) {
      write_status<kube::Qos>("qos-status", name, keeper, &Operator::qos_keeper);
    }
  }
  if (config_status_.dirt > Dirt::kInforms) {
    write_status<kube::SchedulerConfig>("config-status", std::string{kube::kSchedulerConfigName},
                                        config_status_, &Operator::config_keeper);
  }
  for (auto& [name, keeper] : other_config_status_) {
    if (keeper.dirt > Dirt::kInforms) {
      write_status<kube::SchedulerConfig>("config-status", name, keeper, &Operator::config_keeper);
    }
  }
}

void Operator::write_job_status(JobRecord& job) {
  job.wanted().term = term_;
  write_status<kube::Job>(point_of(job), job.uid, job.status, &Operator::job_keeper);
}

// Writes that only inform share a budget, the head of the queue first, each object once a minute.
void Operator::pump_informing() {
  const auto passed = std::chrono::duration<double>(now_ - tokens_at_).count();
  const double rate = writes_wait() ? kInformingPerSecondWhenBusy : kInformingPerSecond;
  tokens_ = std::min(rate, tokens_ + passed * rate);
  tokens_at_ = now_;
  const auto is_due = [&](const auto& keeper) {
    return keeper.dirt == Dirt::kInforms && !keeper.is_flying() && !keeper.gone &&
           keeper.retry_at <= now_ && keeper.informed_at + kInformingPeriod <= now_;
  };
  for (auto& [name, keeper] : partition_status_) {
    if (tokens_ < 1 || !is_due(keeper)) continue;
    tokens_ -= 1;
    write_status<kube::Partition>("partition-status", name, keeper, &Operator::partition_keeper);
  }
  for (auto& [name, keeper] : qos_status_) {
    if (tokens_ < 1 || !is_due(keeper)) continue;
    tokens_ -= 1;
    write_status<kube::Qos>("qos-status", name, keeper, &Operator::qos_keeper);
  }
  pump_trials();
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

void Operator::queue_informing(const JobRecord& job) {
  const Keeper<kube::Job>& status = job.status;
  const base::Instant at = std::max(status.retry_at, status.informed_at + kInformingPeriod);
  if (at <= now_) {
    informing_.insert({job.wanted().priority.value_or(0), job.id, job.uid});
  } else {
    informing_later_.emplace(at, job.uid);
  }
}

// Once a minute: run times and the state that follows the slices, of jobs that run.
void Operator::refresh_running() {
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
    job->status.mark(Dirt::kInforms);
    status_jobs_.insert(uid);
  }
}

// The newest stored version, as the informer saw it.
void Operator::observe_stored(JobRecord& job, const kube::Job& object) {
  Keeper<kube::Job>& keeper = job.status;
  if (keeper.is_flying() ||
      !is_newer_version(object.metadata.resource_version, keeper.metadata.resource_version)) {
    return;
  }
  if (object.status.term.value_or(0) > term_) return be_fenced(*object.status.term);
  keeper.metadata.resource_version = object.metadata.resource_version;
  if (keeper.stored == object.status) return;
  // Somebody else changed the status: ours is written again.
  keeper.stored = object.status;
  keeper.mark(Dirt::kUrgent);
  status_jobs_.insert(job.uid);
}

template <typename T>
void Operator::write_status(std::string point, const std::string& name, Keeper<T>& keeper,
                            FindKeeper<T> find) {
  if (keeper.is_flying() || keeper.gone || keeper.retry_at > now_) return;
  if (keeper.dirt == Dirt::kInforms) keeper.informed_at = now_;
  keeper.flying = std::exchange(keeper.dirt, Dirt::kClean);
  ++counters_.status_writes;
  T from;
  from.metadata = keeper.metadata;
  from.status = keeper.stored;
  T to = from;
  to.status = keeper.wanted;
  writer_.submit(
      {.point = std::move(point),
       .run = [this, client = client_, from = std::move(from), to = std::move(to), name, find] {
         auto result = std::make_shared<base::Result<T>>(client.patch_status_from(from, to));
         auto fresh = std::make_shared<base::Result<T>>(base::Error{});
         if (!result->ok() && result->error().code == base::Code::kConflict) {
           *fresh = client.get<T>(kube::key_of(from.metadata));
         }
         return [this, name, find, result, fresh] {
           if (Keeper<T>* known = (this->*find)(name)) {
             on_status_written(*known, *result, *fresh);
           }
           if constexpr (std::is_same_v<T, kube::Job>) {
             if (result->ok()) keep_template(name, **result);
           }
         };
       }});
}

template <typename T>
void Operator::on_status_written(Keeper<T>& keeper, const base::Result<T>& result,
                                 const base::Result<T>& fresh) {
  const Dirt flown = std::exchange(keeper.flying, Dirt::kClean);
  const T* newest = result.ok() ? &*result : fresh.ok() ? &*fresh : nullptr;
  if constexpr (std::is_same_v<T, kube::Job>) {
    if (newest != nullptr && newest->status.term.value_or(0) > term_) {
      return be_fenced(*newest->status.term);
    }
  }
  if (newest != nullptr && newest->metadata.uid == keeper.metadata.uid) {
    keeper.metadata.resource_version = newest->metadata.resource_version;
    keeper.stored = newest->status;
  } else if (newest != nullptr || (!result.ok() && result.error().code == base::Code::kNotFound) ||
             (!fresh.ok() && fresh.error().code == base::Code::kNotFound)) {
    keeper.gone = true;  // deleted; another object may bear its name by now
  }
  if (result.ok()) {
    keeper.failures = 0;
    return;
  }
  keeper.mark(flown);
  if (result.error().code == base::Code::kConflict) {
    ++counters_.conflicts;
    if (newest != nullptr) return;
  }
  if (keeper.gone) return;
  ++counters_.write_failures;
  keeper.retry_at = now_ + retry_delay(++keeper.failures);
  warn("status not written", "object=" + kube::to_string(kube::key_of(keeper.metadata)) +
                                 " error=\"" + result.error().message + "\"");
}

// Also wakes what waits for this job's commit points.
Keeper<kube::Job>* Operator::job_keeper(const std::string& uid) {
  JobRecord* job = find_job(uid);
  if (job == nullptr) return nullptr;
  touch(uid);
  status_jobs_.insert(uid);
  for (const std::string& node : job->nodes) dirty_nodes_.insert(node);
  return &job->status;
}

Keeper<kube::Partition>* Operator::partition_keeper(const std::string& name) {
  const auto found = partition_status_.find(name);
  return found == partition_status_.end() ? nullptr : &found->second;
}

Keeper<kube::Qos>* Operator::qos_keeper(const std::string& name) {
  const auto found = qos_status_.find(name);
  return found == qos_status_.end() ? nullptr : &found->second;
}

Keeper<kube::SchedulerConfig>* Operator::config_keeper(const std::string& name) {
  if (name == kube::kSchedulerConfigName) return &config_status_;
  const auto found = other_config_status_.find(name);
  return found == other_config_status_.end() ? nullptr : &found->second;
}

}  // namespace control
