#include "operator/jobs/job_book.h"

#include <algorithm>
#include <utility>

#include "base/cut_text.h"
#include "base/number_list.h"

#include "operator/gang/gang_observation.h"
#include "operator/jobs/late_status.h"
#include "operator/jobs/task_wishes.h"
#include "translation/reason_names.h"

namespace control {
namespace {

// Returns true if the object in the API server says everything that the record knows: its status is
// written and seen, no write is under way, and the present spec was judged. Only then may the
// record be dropped, because it can be made again from the object.
bool says_it_all(const JobRecord& job) {
  const StatusMirror<kube::Job>& status = job.status;
  const bool is_written =
      status.urgency() == WriteUrgency::kClean && !status.is_in_flight() && status.exists();
  // The version matters: equal contents of an older version could be overtaken by a watch event
  // that is still to come.
  return is_written && !*job.judge_again && !job.launch->launching &&
         job.launch->creating.empty() &&
         job.object->metadata.resource_version == status.version() &&
         job.object->status == status.stored() && job.object->spec == job.basis();
}

// Returns true if the present spec was judged, also one that was edited after the job's end.
bool is_observed(const kube::Job& job) {
  return job.status.observed_generation.value_or(0) == job.metadata.generation;
}

}  // namespace

// 1. Keys whose object is gone, or another one of that name (deleted and made again between two
//    looks): the old job is deleted.
// 2. New and changed objects in the order in which they were created, and those of one second in
//    the order of their versions. Arrivals number the jobs, so this order is the order of the
//    queue, and it is the same for each leader.
JobBook::Seen JobBook::observe(const Changes<kube::Job>& changes) {
  Seen seen;
  std::vector<std::shared_ptr<const kube::Job>> objects;
  // 1. objects that are gone, or replaced under their name
  for (const auto& [key, object] : changes) {
    const auto known = uid_of_.find(key);
    if (known != uid_of_.end() && (object == nullptr || object->metadata.uid != known->second)) {
      const std::string uid = known->second;
      uid_of_.erase(known);
      // The record stays until the job's pods are gone (ControlLoop::reconcile). If the job had
      // ended, it is made again for that.
      if (JobRecord* job = find(uid)) {
        job->deleted = true;
        job->status.saw_gone();
        touch(uid);
        if (job->array) {
          for (const auto& [number, task] : job->array->tasks()) {
            task->deleted = true;
            task->status.saw_gone();
            touch(task->uid);
          }
        }
        seen.deleted.push_back(uid);
      }
    }
    if (object != nullptr) objects.push_back(object);
  }
  // 2. new and changed objects, in the order of the queue
  std::stable_sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) {
    if (a->metadata.creation_timestamp != b->metadata.creation_timestamp) {
      return a->metadata.creation_timestamp < b->metadata.creation_timestamp;
    }
    return is_newer_version(b->metadata.resource_version, a->metadata.resource_version);
  });
  for (const auto& object : objects) on_job(object, seen);
  return seen;
}

// An older generation than the known one comes from a watch that lags behind the answer to a write:
// only its status is looked at. In a newer version it is what a restore of etcd has brought back.
void JobBook::on_job(const std::shared_ptr<const kube::Job>& object, Seen& seen) {
  const std::string& uid = object->metadata.uid;
  JobRecord* known = find(uid);
  if (known == nullptr) return on_new_job(object, seen);
  JobRecord& job = *known;
  // Only a new generation must be judged: a change of metadata or status alone raises none.
  if (object->metadata.generation >= job.object->metadata.generation ||
      is_newer_version(object->metadata.resource_version, job.object->metadata.resource_version)) {
    if (object->metadata.generation != job.object->metadata.generation) judge_again(job);
    take_object(job, object);
  }
  if (const auto facts = templates_.find(uid); facts != nullptr && facts != job.pod_template) {
    job.pod_template = facts;
    judge_again(job);
  }
  touch(uid);
  if (job.array) {
    for (const auto& [number, task] : job.array->tasks()) {
      take_object(*task, job.object);
      task->pod_template = job.pod_template;
      touch(task->uid);
    }
  }
  // Our own writes come back through the watch; only a version that we have not seen can
  // be another writer's.
  if (!job.status.is_news(*object)) return job.status.share(object);
  seen.term = std::max(seen.term, object->status.term.value_or(0));
  if (!take_late(job, object->status)) seen.late = uid;
  // Another writer changed the status: the wanted one is written again.
  if (job.status.saw(*object)) mark(job, WriteUrgency::kUrgent);
  job.status.share(object);
}

// If the specs are equal, nothing of the object before is kept.
void JobBook::take_object(JobRecord& job, const std::shared_ptr<const kube::Job>& newer) {
  job.object = newer;
  if (job.basis() == job.object->spec) accept(job);
}

// No pod has a start that is undone in its name, but users may have seen its number: it is used up.
bool JobBook::take_late(JobRecord& job, const kube::JobStatus& stored) {
  if (stored.term.value_or(0) >= term_) return true;
  const LateStatus late = late_status(job.status.stored(), stored);
  if (late != LateStatus::kStart) return late == LateStatus::kInforms;
  const auto use_up = [this](JobRecord& one, std::optional<std::int64_t> starts) {
    if (one.is_allocated() || one.is_final()) return;  // its own start has that number
    change(one, WriteUrgency::kUrgent,
           [&](auto& wanted) { wanted.starts = std::max(wanted.starts, starts); });
  };
  if (!job.array) {
    use_up(job, stored.starts);
    return true;
  }
  for (const kube::ArrayTask& entry : stored.array->tasks) {
    if (!entry.starts) continue;
    const auto task = job.array->tasks().find(entry.task);
    if (task != job.array->tasks().end()) {
      use_up(*task->second, entry.starts);
    } else {
      job.array->undone_starts.edit()[entry.task] = *entry.starts;
    }
  }
  return true;
}

// A job that has ended already is kept as its object alone, without a record. The number that a
// status has is taken only when a leader restores; afterwards each number comes from JobNumbers, so
// that no two jobs get the same one. Two may have one if etcd was restored to before kubegang was
// installed again: the second one has none then.
void JobBook::on_new_job(const std::shared_ptr<const kube::Job>& object, Seen& seen) {
  const std::string& uid = object->metadata.uid;
  uid_of_[kube::key_of(object->metadata)] = uid;
  // A restored backup, or a Job that was copied with its status, has a number that may be in use.
  const sched::JobId stored{is_restored_ ? 0 : object->status.job_id.value_or(0)};
  const sched::JobId id = uid_by_id_.contains(stored) ? sched::JobId{0} : stored;
  ++arrivals_;
  // After a restart these are most of the jobs there are.
  if (object->status.state && kube::is_final(*object->status.state)) {
    keep_finished(object, arrivals_, id);
    end_wait_for(kube::key_of(object->metadata));
    seen.ended.push_back(object);
    if (is_restored_ && !is_observed(*object)) (void)take_out(uid);
    return;
  }
  JobRecord& job = make_record(object, arrivals_, id);
  unfinished_[uid] = &job;
  if (job.array) take_array(job);
  if (is_restored_) touch(uid);
}

// Takes what the status says about its tasks. Before their pods are looked at, which belong to
// their records.
void JobBook::take_array(JobRecord& array) {
  const auto& stored = array.object->status.array;
  if (!stored) return;
  array.array->restore(*stored, array.object->status.exit_code.value_or(0));
  for (const kube::ArrayTask& entry : stored->tasks) {
    // One that has not started informs only: it waits with the rest.
    const bool is_new = entry.starts && entry.task >= 0 && entry.task < kube::kArrayTasksMax &&
                        !array.array->tasks().contains(entry.task);
    if (is_new) make_task(array, entry.task, &entry);
  }
  for (const kube::DependencyStatus& term : array.object->status.dependency) {
    const auto failed = base::parse_number_list(term.failed_tasks, kube::kArrayTasksMax - 1);
    if (failed) take_waiting(array, *failed);
  }
}

// The tasks wait in vain, which the rest of their array does not.
void JobBook::take_waiting(JobRecord& array, const std::vector<int>& tasks) {
  for (const int number : tasks) {
    const bool waits = array.array->outcomes().of(number) == kube::TaskOutcome::kNone &&
                       !array.array->tasks().contains(number);
    if (!waits) continue;
    const kube::ArrayTask entry{.task = number, .state = kube::JobState::kPending};
    make_task(array, number, &entry);
  }
}

JobRecord& JobBook::make_task(JobRecord& array, int number, const kube::ArrayTask* stored) {
  const std::string key = record_key(array.uid, number);
  std::unique_ptr<JobRecord>& slot = jobs_[key];
  // The array is judged, and speaks for it.
  slot = std::make_unique<JobRecord>(
      WishNotes{.submitted = array.wishes->submitted,
                .request = with_terms_of(array.wishes->request, request_of_task(array, number))});
  JobRecord& task = *slot;
  task.judge_again.edit() = false;
  task.arrival = array.arrival;
  task.key = array.key;
  task.uid = key;
  task.task = number;
  task.object = array.object;
  accept(task, *array.accepted);
  task.pod_template = array.pod_template;
  task.deleted = array.deleted;
  kube::Job object;
  object.metadata = array.object->metadata;
  if (stored != nullptr) object.status = kube::task_status(*stored, array.object->status);
  task.status = JobMirror{object};
  if (stored == nullptr) {
    kube::JobStatus& wanted = task.wanted_unmarked() = array.wanted();
    wanted.array.reset();
    wanted.job_id.reset();
    wanted.state = kube::JobState::kPending;
    wanted.observed = kube::JobObserved{};
    if (const auto undone = array.array->undone_starts.edit().extract(number)) {
      wanted.starts = undone.mapped();
    }
    if (array.deleted) task.status.saw_gone();
  }
  array.array->add_task(number, task);
  unfinished_[key] = &task;
  if (array.id.number() != 0) set_id(task, sched::JobId::of_task(array.id, number));
  take_pods(task);
  touch(key);
  return task;
}

// Makes the record of a job from its object alone.
JobRecord& JobBook::make_record(const std::shared_ptr<const kube::Job>& object,
                                std::int64_t arrival, sched::JobId id) {
  const std::string& uid = object->metadata.uid;
  std::unique_ptr<JobRecord>& slot = jobs_[uid];
  slot = std::make_unique<JobRecord>();
  slot->arrival = arrival;
  slot->key = kube::key_of(object->metadata);
  slot->uid = uid;
  slot->object = object;
  // The spec that was accepted last. For a job that is only known from its object it is the present
  // one.
  accept(*slot);
  slot->pod_template = templates_.find(uid);
  if (slot->pod_template == nullptr) slot->pod_template = std::make_shared<const TemplateFacts>();
  slot->status = JobMirror{*object};
  slot->status.share(object);
  if (object->spec.array) slot->array = std::make_unique<ArrayRecord>();
  if (id.number() != 0) set_id(*slot, id);
  return *slot;
}

bool JobBook::put_pod(const kube::ObjectKey& key, const PodPlace& place) {
  if (JobRecord* job = peek(place.job_uid); job != nullptr && job->key.ns == key.ns) {
    // The record of a job that was deleted waits for its pods, whatever its state.
    if (job->is_final() && !job->deleted && !is_finished(*place.pod)) return false;
    job->put_pod(key.name, place.pod);
    touch(job->uid);
    return true;
  }
  // Pods of a job, or a task, that has ended have no consequences once they have ended, too. Nor
  // have those of a task that waits without a record, until it gets one (take_pods).
  const std::string uid = uid_in(place.job_uid);
  const JobRecord* array = peek(uid);
  if (array != nullptr && array->array && array->key.ns == key.ns && uid != place.job_uid) {
    return is_finished(*place.pod);
  }
  const auto finished = finished_.find(uid);
  return finished != finished_.end() && finished->second.object->metadata.ns == key.ns &&
         is_finished(*place.pod);
}

void JobBook::erase_pod(const kube::ObjectKey& key, const PodPlace& place) {
  JobRecord* job = peek(place.job_uid);
  // The array may wait for it to be gone.
  if (job == nullptr) return touch(uid_in(place.job_uid));
  job->erase_pod(key.name);
  touch(job->uid);
}

JobRecord* JobBook::peek(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : found->second.get();
}

JobRecord* JobBook::peek(sched::JobId id) const {
  const auto found = uid_by_id_.find(id);
  return found == uid_by_id_.end() ? nullptr : peek(found->second);
}

JobRecord* JobBook::find(const std::string& uid) {
  JobRecord* job = peek(uid);
  return job != nullptr ? job : take_out(uid);
}

JobRecord* JobBook::find(sched::JobId id) {
  const auto found = uid_by_id_.find(id);
  return found == uid_by_id_.end() ? nullptr : find(found->second);
}

// Both maxima include jobs that have ended: their numbers are taken for good, and a new term must
// be above every stored one.
std::int64_t JobBook::highest_id() const {
  std::int64_t id = 0;
  for (const auto& [uid, job] : jobs_) {
    id = std::max({id, job->id.number(), job->wanted().job_id.value_or(0)});
  }
  for (const auto& [uid, job] : finished_) id = std::max(id, job.id.number());
  return id;
}

std::int64_t JobBook::highest_term() const {
  std::int64_t term = 0;
  for (const auto& [uid, job] : jobs_) {
    term = std::max(term, job->wanted().term.value_or(0));
  }
  for (const auto& [uid, job] : finished_) {
    term = std::max(term, job.object->status.term.value_or(0));
  }
  return term;
}

void JobBook::set_id(JobRecord& job, sched::JobId id) {
  job.id = id;
  uid_by_id_[id] = job.uid;
  if (job.task) return;
  end_wait_for(job.key);
  // For an array that another job's number was taken from (a new leader numbers it again).
  if (!job.array) return;
  for (const auto& [number, task] : job.array->tasks()) {
    set_id(*task, sched::JobId::of_task(id, number));
  }
}

void JobBook::keep_finished(const std::shared_ptr<const kube::Job>& object, std::int64_t arrival,
                            sched::JobId id) {
  Finished& finished = finished_[object->metadata.uid];
  finished = {object, arrival, id};
  if (id.number() != 0) finished_by_id_[id] = &finished;
}

// They look for its number.
void JobBook::end_wait_for(const kube::ObjectKey& key) {
  const auto found = awaited_.find(key);
  if (found == awaited_.end()) return;
  const std::set<std::string> waiting = std::move(found->second);
  awaited_.erase(found);
  for (const std::string& uid : waiting) {
    JobRecord* job = peek(uid);
    if (job == nullptr) continue;
    judge_again(*job);
    touch(uid);
  }
}

sched::JobId JobBook::number_of(const kube::ObjectKey& key) const {
  const auto uid = uid_of_.find(key);
  if (uid == uid_of_.end()) return sched::JobId{0};
  if (const JobRecord* job = peek(uid->second)) return job->id;
  const auto finished = finished_.find(uid->second);
  return finished == finished_.end() ? sched::JobId{0} : finished->second.id;
}

// Returns the outcome of a task that no longer has a record.
std::optional<JobBook::Outcome> JobBook::outcome_of_task(sched::JobId id) const {
  const auto task = id.task();
  if (!task || peek(id) != nullptr) return std::nullopt;
  const auto outcome_in = [&](const std::string& ns, const kube::TaskOutcomes& outcomes) {
    switch (outcomes.of(*task)) {
      case kube::TaskOutcome::kNone:
        break;
      case kube::TaskOutcome::kSucceeded:
        return std::optional{Outcome{ns, sched::JobState::kCompleted, std::nullopt}};
      case kube::TaskOutcome::kFailed:
        return std::optional{Outcome{ns, sched::JobState::kFailed, std::nullopt}};
      case kube::TaskOutcome::kCancelled:
        return std::optional{Outcome{ns, sched::JobState::kCancelled, std::nullopt}};
    }
    return std::optional<Outcome>{};
  };
  if (const JobRecord* array = peek(id.array())) {
    if (!array->array) return std::nullopt;
    const ArrayRecord& record = *array->array;
    if (auto ended = outcome_in(array->key.ns, record.outcomes())) return ended;
    // An array that has ended has no other tasks. Which there are is not known of one that was
    // never accepted.
    const bool is_one = record.wishes->all.empty() || record.wishes->all.contains(*task);
    if (array->is_final() || !is_one) return std::nullopt;
    return Outcome{array->key.ns, sched::JobState::kPending, std::nullopt};
  }
  const auto finished = finished_by_id_.find(id.array());
  if (finished == finished_by_id_.end()) return std::nullopt;
  const kube::Job& array = *finished->second->object;
  if (!array.status.array) return std::nullopt;
  return outcome_in(array.metadata.ns, kube::TaskOutcomes{*array.status.array});
}

std::optional<JobBook::Outcome> JobBook::outcome_of(sched::JobId id) const {
  if (const auto ended = outcome_of_task(id)) return ended;
  if (const JobRecord* job = peek(id)) {
    if (!job->is_final()) return Outcome{job->key.ns, sched::JobState::kPending, std::nullopt};
    return Outcome{job->key.ns, state_of(*job->wanted().state), job->wanted().start_time};
  }
  const auto finished = finished_by_id_.find(id);
  if (finished == finished_by_id_.end()) return std::nullopt;
  const kube::Job& job = *finished->second->object;
  return Outcome{job.metadata.ns, state_of(*job.status.state), job.status.start_time};
}

kube::TaskOutcomes JobBook::outcomes_of(sched::JobId array) const {
  if (const JobRecord* record = peek(array)) {
    return record->array ? record->array->outcomes() : kube::TaskOutcomes{};
  }
  const auto finished = finished_by_id_.find(array);
  if (finished == finished_by_id_.end()) return {};
  const auto& status = finished->second->object->status.array;
  return status ? kube::TaskOutcomes{*status} : kube::TaskOutcomes{};
}

// A finished job that was edited without a leader has a spec that is not observed yet.
void JobBook::touch_all() {
  std::vector<std::string> edited;
  for (const auto& [uid, finished] : finished_) {
    if (!is_observed(*finished.object)) edited.push_back(uid);
  }
  for (const std::string& uid : edited) (void)take_out(uid);
  for (const auto& [uid, job] : jobs_) touch(uid);
}

bool JobBook::set_condition(JobRecord& job, WriteUrgency how, std::string_view type,
                            kube::ConditionStatus value, std::string reason, std::string message) {
  const bool changed = kube::set_condition(job.wanted_unmarked().conditions,
                                           {.type = std::string{type},
                                            .status = value,
                                            .observed_generation = job.object->metadata.generation,
                                            .last_transition_time = now_,
                                            .reason = std::move(reason),
                                            .message = std::move(message)},
                                           now_);
  if (changed) mark(job, how);
  return changed;
}

// 1. The message has its bound from here on, from any source: a commit point that the API server
//    refuses is never stored, and blocks the job's nodes for all jobs. Conditions have their bound
//    already (kube::set_condition).
// 2. A commit point holds up pods and timetables of the job, so the job is looked at once more.
void JobBook::mark(JobRecord& job, WriteUrgency how) {
  std::string& message = job.wanted_unmarked().message;
  message = base::shortened(std::move(message), kube::kStatusMessageBytesMax);
  job.status.mark(how);
  if (job.task && how == WriteUrgency::kInforms) {
    // The status of its array says it, with changes of other tasks.
    JobRecord& array = array_of(job);
    array.status.mark(how);
    marked_.insert(array.uid);
    return;
  }
  marked_.insert(job.uid);
  if (how == WriteUrgency::kCommit) touch(job.uid);
}

// The earlier of two instants counts; one that has passed is replaced.
void JobBook::set_timer(JobRecord& job, base::Instant at) {
  if (job.timer <= at && job.timer > now_) return;
  // The set is ordered by instant, so an entry is moved by taking it out and putting it in again.
  timers_.erase({job.timer, job.uid});
  job.timer = at;
  timers_.emplace(at, job.uid);
}

// Thousands of finished jobs are kept for days (ttlAfterFinished). Without a record each costs its
// object, which the informer holds anyway. Its pods stay in PodIndex.
bool JobBook::put_away(JobRecord& job) {
  if (!says_it_all(job)) return false;
  const std::string uid = job.uid;
  keep_finished(job.object, job.arrival, job.id);
  uid_by_id_.erase(job.id);
  timers_.erase({job.timer, uid});
  marked_.erase(uid);
  jobs_.erase(uid);
  return true;
}

// Takes the job's record out as it was.
JobRecord* JobBook::take_out(const std::string& uid) {
  const auto found = finished_.find(uid);
  if (found == finished_.end()) return nullptr;
  const auto by_id = finished_by_id_.find(found->second.id);
  if (by_id != finished_by_id_.end() && by_id->second == &found->second) {
    finished_by_id_.erase(by_id);
  }
  const Finished finished = std::move(found->second);
  finished_.erase(found);
  JobRecord& job = make_record(finished.object, finished.arrival, finished.id);
  // The spec was judged before the record was put away (says_it_all).
  job.judge_again.edit() = false;
  if (job.array && job.object->status.array) {
    job.array->restore(*job.object->status.array, job.object->status.exit_code.value_or(0));
  }
  take_pods(job);
  touch(uid);
  return &job;
}

// Gives a record that was just made the pods that PodIndex has kept. The pods of a task that has
// not started are of a start that a restore of etcd took away: the next start has the same number,
// and so the same names.
void JobBook::take_pods(JobRecord& job) {
  kube::ObjectKey named = job.key;
  if (job.task) named.name += "-" + std::to_string(*job.task);
  pods_.for_each_of(named, job.uid,
                    [&](const std::string& name, const std::shared_ptr<const kube::Pod>& pod) {
                      job.put_pod(name, pod);
                    });
}

void JobBook::forget(JobRecord& job) {
  const std::string uid = job.uid;
  // Every index by which the job can be found is emptied before the record goes: unfinished_ holds
  // a raw pointer to it.
  unfinished_.erase(uid);
  uid_by_id_.erase(job.id);
  timers_.erase({job.timer, uid});
  marked_.erase(uid);
  if (job.task) {
    JobRecord& array = array_of(job);
    array.array->erase_task(*job.task);
    touch(array.uid);
    jobs_.erase(uid);
    return;
  }
  if (const auto& dependency = job.object->spec.dependency) {
    for (const kube::DependencyTerm& term : dependency->terms) {
      const auto found = awaited_.find({.ns = job.key.ns, .name = term.job_name});
      if (found == awaited_.end()) continue;
      found->second.erase(uid);
      if (found->second.empty()) awaited_.erase(found);
    }
  }
  jobs_.erase(uid);
}

void JobBook::fire_timers() {
  while (next_due() <= now_) {
    const std::string uid = timers_.extract(timers_.begin()).value().second;
    JobRecord* job = peek(uid);
    if (job == nullptr) continue;
    // The entry is out of the set; the record must say so, too, or set_timer() would take an
    // instant that has passed for one that is still set.
    job->timer = base::kNever;
    touch(uid);
  }
}

// In the order of arrival, whatever touched them: the order in which the scheduler gets jobs
// decides among equals.
std::vector<std::string> JobBook::take_touched() {
  std::vector<std::pair<std::int64_t, std::string>> in_order;
  for (const std::string& uid : std::exchange(touched_, {})) {
    if (const JobRecord* job = peek(uid)) in_order.emplace_back(job->arrival, uid);
  }
  std::sort(in_order.begin(), in_order.end());
  std::vector<std::string> uids;
  uids.reserve(in_order.size());
  for (auto& [arrival, uid] : in_order) uids.push_back(std::move(uid));
  return uids;
}

base::Instant JobBook::next_due() const {
  return timers_.empty() ? base::kNever : timers_.begin()->first;
}

}  // namespace control
