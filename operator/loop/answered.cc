// The consequences of an answer to a write for the parts.
#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "operator/loop/control_loop.h"
#include "operator/loop/kept_fields.h"
#include "operator/publish/mirror.h"

namespace control {
// Returns the term of the outcome's object, by which another leader is recognized.
template <typename T>
std::int64_t term_in(const StatusPatched<T>& outcome) {
  if constexpr (std::is_same_v<T, kube::Job>) {
    const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
    return newest.ok() ? newest->status.term.value_or(0) : 0;
  } else {
    return 0;
  }
}

// A conflict is not a failure: another writer was faster, and the next try has what it wrote.
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
      // Timetables and pods may wait for this job's commit points.
      for (const std::string& node : job->start->nodes) timetables_.look_again(node);
    }
  } else if constexpr (std::is_same_v<T, kube::BatchJob>) {
    mirror = managed_.find_status(outcome.uid);
    managed_.look_again(outcome.uid);
  } else {
    mirror = policy_.find_status<T>(outcome.key.name);
  }
  // The answer says nothing of an object that was created again under its name.
  if (mirror == nullptr || mirror->uid() != outcome.uid) return;
  // CEL has refused our write, or let one through that came later: in both cases another operator
  // leads, and this one must write nothing more.
  if (const std::int64_t term = term_in(outcome); term > term_) return be_fenced(term);
  if constexpr (std::is_same_v<T, kube::Job>) {
    const bool is_read =
        !outcome.result.ok() && outcome.fresh.ok() && outcome.fresh->metadata.uid == outcome.uid;
    JobRecord& job = *jobs_.find(outcome.uid);
    if (is_read && !jobs_.take_late(job, outcome.fresh->status)) return be_overtaken(job);
  }
  // Takes over what is stored now. After a lost race the mirror has the newest version and writes
  // what it wants on top of that.
  const WriteEnd end = mirror->answered(outcome.result, outcome.fresh, now_);
  count_end(end);
  if (end == WriteEnd::kFailed) {
    report_.warn("status not written", {{"object", kube::to_string(mirror->key())},
                                        {"error", outcome.result.error().message}});
  }
  // A watch will show the deletion; until then this line is the only trace.
  if (end == WriteEnd::kGone) {
    report_.warn("status not written, the object is gone",
                 {{"object", kube::to_string(mirror->key())}, {"uid", outcome.uid}});
  }
  if constexpr (std::is_same_v<T, kube::Job>) {
    // The answer to a patch is the whole object: the pod template that the informers drop comes
    // with it.
    if (outcome.result.ok()) pod_writes_.keep_template(*outcome.result, outcome.uid);
    // The watch may have shown it before.
    if (JobRecord* job = jobs_.peek(outcome.uid)) job->status.share(job->object);
    tasks_answered(outcome);
  }
}

// The outcome of the write of an array's status is that of its tasks.
void ControlLoop::tasks_answered(const StatusPatched<kube::Job>& outcome) {
  JobRecord* array = jobs_.find(outcome.uid);
  if (array == nullptr || !array->array) return;
  // The part that mirrors of tasks look at: not the spec, and not the entries of all other tasks.
  const auto head_of = [](const base::Result<kube::Job>& whole) -> base::Result<kube::Job> {
    if (!whole.ok()) return whole.error();
    kube::Job head;
    head.metadata = whole->metadata;
    return head;
  };
  base::Result<kube::Job> result = head_of(outcome.result);
  base::Result<kube::Job> fresh = head_of(outcome.fresh);
  for (auto& [key, said] : statuses_.take_in_flight(*array, outcome.result.ok())) {
    JobRecord* task = jobs_.peek(key);
    if (task == nullptr) continue;
    if (result.ok()) result->status = std::move(said);
    if (fresh.ok()) fresh->status = kube::stored_task(outcome.fresh->status, *task->task);
    (void)task->status.answered(result, fresh, now_);
    jobs_.touch(key);
    statuses_.look_again(key);
    for (const std::string& node : task->start->nodes) timetables_.look_again(node);
    if (outcome.result.ok()) pod_writes_.keep_template(*outcome.result, key);
  }
}

template void ControlLoop::answered(StatusPatched<kube::Partition>&&);
template void ControlLoop::answered(StatusPatched<kube::Qos>&&);
template void ControlLoop::answered(StatusPatched<kube::Account>&&);
template void ControlLoop::answered(StatusPatched<kube::SchedulerConfig>&&);
template void ControlLoop::answered(StatusPatched<kube::Job>&&);
template void ControlLoop::answered(StatusPatched<kube::BatchJob>&&);

// Pods of jobs on the node wait until its timetable is published (CommitGate), so these jobs are
// looked at again.
void ControlLoop::answered(TimetablePut&& outcome) {
  const auto& newest = outcome.result.ok() ? outcome.result : outcome.fresh;
  // `fresh` was read after a failure, for example after the CRD's rule has refused a lower term.
  if (newest.ok() && newest->spec.term > term_) return be_fenced(newest->spec.term);
  const std::string node = outcome.node;
  const WriteEnd end = timetables_.answered(std::move(outcome), now_);
  count_end(end);
  if (end == WriteEnd::kStored) late_.end(node, now_, run_time_sources());
  // Something else may be wanted by now.
  note_late_table(node);
  for (const std::string& uid : nodes_.jobs_on(node)) jobs_.touch(uid);
}

void ControlLoop::answered(TimetableDeleted&& outcome) {
  const std::string node = outcome.node;
  timetables_.answered(outcome, now_);
  for (const std::string& uid : nodes_.jobs_on(node)) jobs_.touch(uid);
}

void ControlLoop::answered(RecordedRead&& outcome) {
  recorded_.answered(outcome, now_);
  time_to_live_.look_again(now_);
  unseen_jobs_.answered(recorded_.said());
  if (outcome.lease.ok()) return;
  report_.warn("how far jobs are recorded is not known; those that have ended are kept",
               {{"error", outcome.lease.error().message}});
}

// Nothing waits for the record: a write that failed is tried again after its back-off.
void ControlLoop::answered(UsagePut&& outcome) {
  const WriteEnd end = usage_.answered(outcome, now_);
  count_end(end);
  if (end == WriteEnd::kFailed) {
    report_.warn("usage not written", {{"error", outcome.result.error().message}});
  }
}

// Returns the newest state that is known under that name; null: none.
template <typename T>
const T* ControlLoop::known(const kube::ObjectKey& key) const {
  if constexpr (std::is_same_v<T, kube::Pod>) {
    const PodPlace* place = pods_.find(key);
    return place == nullptr ? nullptr : place->pod.get();
  } else if constexpr (std::is_same_v<T, kube::Node>) {
    return nodes_.object(key.name);
  } else {
    const auto& entries = policy_.entries<T>();
    const auto found = entries.find(key.name);
    return found == entries.end() ? nullptr : found->second.object.get();
  }
}

// Takes what an answer shows of an object, if no watch and no other answer has shown a newer state
// of it, or its deletion. The inbox is no way for that: it takes whatever comes last as the newest.
template <typename T>
void ControlLoop::take_answer(T object) {
  const kube::ObjectKey key = kube::key_of(object.metadata);
  if (!std::get<Newest<T>>(newest_).is_news(object, known<T>(key))) return;
  if constexpr (requires { keep_what_is_read(object); }) keep_what_is_read(object);
  Changes<T> change;
  change[key] = std::make_shared<const T>(std::move(object));
  observe(change);
  // It is known from now on, not only when the watch shows it.
  if constexpr (std::is_same_v<T, kube::Pod>) pods_.expect(key, now_);
}

// A pod that does not exist is forgotten: its gang has lost a member, or makes the pod again. One
// that exists is known as it is now, so that a job goes on, and can end, while its pods are not
// watched. After any other answer it is read again.
void ControlLoop::answered(PodRead&& outcome) {
  // A state that a watch has shown meanwhile is newer, and the watch goes on from there.
  if (!pods_.is_unseen(outcome.key)) return;
  const kube::Pod& known = *pods_.find(outcome.key)->pod;
  if (known.metadata.uid != outcome.uid) return;  // made again under its name
  auto& result = outcome.result;
  const bool is_gone = result.ok() ? result->metadata.uid != outcome.uid
                                   : result.error().code == base::Code::kNotFound;
  if (is_gone) return index_pod(outcome.key, nullptr);
  if (result.ok()) take_answer(std::move(*result));
}

void ControlLoop::answered(PodDeleted&& outcome) {
  const JobRecord* job = jobs_.peek(outcome.job_uid);
  if (job != nullptr && !outcome.status.ok() &&
      outcome.status.error().code == base::Code::kNotFound) {
    // The watch may have shown that before the answer to the creation came, and will not show it
    // again.
    const auto gone = std::ranges::find(*job->pods, outcome.uid,
                                        [](const auto& each) { return each.second->metadata.uid; });
    if (gone != job->pods->end()) index_pod({job->key.ns, gone->first}, nullptr);
  }
  pod_writes_.answered(std::move(outcome));
}

void ControlLoop::answered(StepSecretCreated&& outcome) {
  if (auto undo = pod_writes_.answered(outcome)) {
    gangs_.undo_start(*jobs_.find(outcome.job_uid), std::move(*undo));
  }
}

void ControlLoop::answered(PodCreated&& outcome) {
  if (auto undo = pod_writes_.answered(outcome)) {
    return gangs_.undo_start(*jobs_.find(outcome.job_uid), std::move(*undo));
  }
  const JobRecord* job = jobs_.peek(outcome.job_uid);
  // A pod of that name may be another job's (AlreadyExists), and an answer may be about an earlier
  // start.
  const bool is_ours = job != nullptr && outcome.was_built && outcome.result.ok() &&
                       record_key_of(*outcome.result) == outcome.job_uid &&
                       job->wanted().starts.value_or(0) == outcome.starts;
  if (is_ours) take_answer(std::move(*outcome.result));
}

// A pod that is gone was noted by PodWrites: the gang cannot become complete.
void ControlLoop::answered(PodPinned&& outcome) {
  if (auto undo = pod_writes_.answered(outcome)) {
    return gangs_.undo_start(*jobs_.find(outcome.job_uid), std::move(*undo));
  }
  const JobRecord* job = jobs_.peek(outcome.job_uid);
  if (job == nullptr || outcome.is_gone || !outcome.result.ok()) return;
  take_answer(std::move(*outcome.result));
}

void ControlLoop::answered(PodNoted&& outcome) {
  if (outcome.job_uid.empty()) return gated_.answered(outcome, now_);
  notes_.answered(outcome, now_);
}

// A Job without an owner among batch Jobs is one of pods behind our gate.
void ControlLoop::answered(JobCreated&& outcome) {
  if (outcome.owner_uid.empty()) return gated_.answered(outcome, now_);
  managed_.answered(outcome, now_);
}

// The jobs that waited for a number are looked at again and get one then.
void ControlLoop::answered(IdsReserved&& outcome) {
  for (const std::string& uid : numbers_.answered(outcome, now_)) jobs_.touch(uid);
  if (outcome.result.ok()) {
    take_answer(*outcome.result);
    auto* config = policy_.find_status<kube::SchedulerConfig>(outcome.result->metadata.name);
    if (config != nullptr) config->wanted_unmarked().next_job_id = outcome.end;
    return;
  }
  ++counters_.write_failures;
  report_.warn("job numbers not reserved", {{"error", outcome.result.error().message}});
  if (outcome.fresh) take_answer(*outcome.fresh);
}

void ControlLoop::answered(TaintsSet&& outcome) {
  taints_.answered(outcome, now_);
  if (outcome.result.ok()) return take_answer(std::move(*outcome.result));
  if (outcome.result.error().code == base::Code::kConflict) return;
  ++counters_.write_failures;
  report_.warn("node's taint not written",
               {{"node", outcome.node}, {"error", outcome.result.error().message}});
}

void ControlLoop::answered(JobDeleted&& outcome) {
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  // Another one by now, or another version, which a watch will show.
  if (outcome.status.error().code == base::Code::kConflict) return;
  ++counters_.write_failures;
  report_.warn("job not deleted",
               {{"job", kube::to_string(outcome.key)}, {"error", outcome.status.error().message}});
}

}  // namespace control
