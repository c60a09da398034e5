#include "operator/gated/gated_pods.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"

namespace control {
namespace {

// The time without a change after which pods of a gang, which appear one after the other, get a
// note of what they wait for. A gang of which only the least number of pods is known has all its
// pods once none has come for that long.
constexpr base::Duration kGatherPods = std::chrono::seconds{5};
// A deletion is repeated until the watch shows that the Job is gone; its outcome is only logged.
constexpr base::Duration kDeleteJobAgain = std::chrono::seconds{10};
// An answered creation that no watch has shown for this time: it was deleted at once.
constexpr base::Duration kUnseenJob = std::chrono::seconds{30};
// After a failed write of a note.
constexpr base::Duration kNoteAgain = std::chrono::seconds{10};

const kube::Condition* waiting_of(const kube::Pod& pod) {
  return kube::find_condition(pod.status.conditions, kube::kPodWaiting);
}

}  // namespace

// Makes a Job for gated pods. A pod with kubegang's gate names its gang by a label; kube-scheduler
// leaves the pod alone for as long as it has the gate.
//
// Five maps hold what is known: pods_ (gated, with a note of kubegang's), gangs_ (pods and Jobs of
// one label in one namespace), groups_ (what PodGroups say), jobs_ (kubegang Jobs that list pods)
// and job_of_pod_ (which Job lists a pod, by UID). Each change touches gangs; due() looks at the
// touched ones, makes or deletes Jobs, and writes notes within the budget. Nothing here survives a
// restart: a new leader observes all pods and Jobs and comes to the same maps.
void GatedPods::observe(const kube::ObjectKey& key, const PodPtr& pod) {
  if (!adopts_) return;
  const bool is_gated = pod != nullptr && !pod->metadata.deletion_timestamp && has_gang_gate(*pod);
  const bool has_note = pod != nullptr && waiting_of(*pod) != nullptr;
  forget_pod(key);
  // A pod with a note and without the gate is kept as well: its note is out of date and must be
  // removed. Its gate was removed by us (its Job has started) or by its author.
  if (!is_gated && !has_note) return;
  pods_[key] = pod;
  if (has_note) to_note_.try_emplace(key, base::Instant{});
  if (!is_gated) return;
  const GangKey gang = gang_of_pod(*pod);
  gangs_[gang].pods[key.name] = pod;
  touched_.insert(gang);
}

GatedPods::GangKey GatedPods::gang_of_pod(const kube::Pod& pod) const {
  return {pod.metadata.ns, gang_of(pod.metadata.labels, adopts_ && adopts_->groups)};
}

// A group concerns gangs that wait for a Job. Gangs that have started stay as they are.
void GatedPods::observe_group(const kube::ObjectKey& key, const kube::PodGroup* group) {
  if (group == nullptr) {
    groups_.erase(key);
  } else {
    groups_[key] = {.min_member = group->spec.min_member};
  }
  touched_.insert({key.ns, {GangName::By::kPodGroup, key.name}});
}

void GatedPods::forget_pod(const kube::ObjectKey& key) {
  const auto known = pods_.extract(key);
  if (!known) return;
  to_note_.erase(key);
  // The label of the version that was known: if its author has changed the label since, the pod
  // leaves its old gang here and joins the new one in observe().
  const GangKey gang = gang_of_pod(*known.mapped());
  const auto found = gangs_.find(gang);
  if (found == gangs_.end() || found->second.pods.erase(key.name) == 0) return;
  touched_.insert(gang);
}

void GatedPods::observe_job(const JobRecord& job) {
  if (job.task || !job.is_adopted()) return;
  // A Job that has lost its allocation without an end, as when kubelet refuses its start, waits
  // again. Some of its pods may have lost their gate by then. delete_broken_jobs sees that they are
  // missing, so such a gang is never queued in parts.
  std::optional<std::string> ended;
  if (job.is_final()) ended = kube::to_string(*job.wanted().state);
  put_job(job.object, !job.is_allocated() && !job.is_final() && !job.deleted, std::move(ended));
}

void GatedPods::observe_ended(const kube::Job& job) {
  if (job.spec.adopted.empty()) return;
  put_job(std::make_shared<const kube::Job>(job), false,
          std::string{kube::to_string(*job.status.state)});
}

void GatedPods::put_job(const std::shared_ptr<const kube::Job>& object, bool waits,
                        std::optional<std::string> ended) {
  const std::string& uid = object->metadata.uid;
  // Both kinds of groups count, whatever is adopted now: it may stand for a gang of another time.
  OurJob job{.gang = {object->metadata.ns, gang_of(object->metadata.labels, true)},
             .object = object,
             .waits = waits,
             .ended = std::move(ended)};
  if (const auto known = jobs_.find(uid); known != jobs_.end()) {
    // A deletion that was asked for stays noted over changes of the object, or it would be asked
    // for at each of them.
    job.deleted_at = known->second.deleted_at;
    forget_job(uid);  // its author may have changed its label, which names its gang
  }
  gangs_[job.gang].jobs.insert(uid);
  // The UID, not the name: a pod that its controller has created again under the same name is not
  // in the Job, whose list never changes.
  for (const kube::AdoptedPod& pod : object->spec.adopted) job_of_pod_[pod.uid] = uid;
  touched_.insert(job.gang);
  jobs_.emplace(uid, std::move(job));
}

void GatedPods::forget_job(const std::string& uid) {
  const auto known = jobs_.extract(uid);
  if (!known) return;
  const OurJob& job = known.mapped();
  // Pods that still have the gate are free again: if all of the gang are, they get another Job.
  // So a user queues a gang again, whose Job has ended, by deleting the Job.
  for (const kube::AdoptedPod& pod : job.object->spec.adopted) {
    const auto of = job_of_pod_.find(pod.uid);
    if (of != job_of_pod_.end() && of->second == uid) job_of_pod_.erase(of);
    // The pod may carry another gang's label by now, so its own gang is touched as well.
    const auto freed = pods_.find({job.object->metadata.ns, pod.name});
    if (freed != pods_.end()) touched_.insert(gang_of_pod(*freed->second));
  }
  gangs_[job.gang].jobs.erase(uid);
  touched_.insert(job.gang);
}

void GatedPods::answered(const JobCreated& outcome, base::Instant now) {
  const auto made = being_made_.extract(outcome.key);
  if (!made) return;
  Gang& gang = gangs_[made.mapped()];
  touched_.insert(made.mapped());
  if (outcome.result.ok()) {
    gang.creation.succeeded();
    gang.refusal.clear();
    // Noted before the watch shows it. Otherwise the pods would look free in the next step and
    // their Job would be asked for a second time; that request would be harmless (equal name), but
    // useless. A Job that the watch has shown already may have gone on since, and is not
    // overwritten.
    if (!jobs_.contains(outcome.result->metadata.uid)) {
      put_job(std::make_shared<const kube::Job>(*outcome.result), true, std::nullopt);
      jobs_.at(outcome.result->metadata.uid).unseen_since = now;
    }
    return;
  }
  // Also if another client has a Job of that name (AlreadyExists): it is tried again with a
  // back-off, because that Job may go.
  gang.creation.failed(now);
  const base::Error& error = outcome.result.error();
  gang.refusal = is_refusal_of_job(error.code) ? error.message : "";
  report_.warn("kubegang job not made",
               {{"of", "pods"}, {"job", kube::to_string(outcome.key)}, {"error", error.message}});
}

void GatedPods::answered(const PodNoted& outcome, base::Instant now) {
  noting_.erase(outcome.uid);
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  // A failure is rare, and the outcome names the pod by UID only, so all pods are searched.
  for (const auto& [key, pod] : pods_) {
    if (pod->metadata.uid == outcome.uid) to_note_[key] = now + kNoteAgain;
  }
}

std::vector<Effect> GatedPods::due(InformBudget& budget, std::size_t room, base::Instant now) {
  std::vector<Effect> effects;
  room_ = room;
  for (GangKey& key : timers_.take_due(now)) touched_.insert(std::move(key));
  // Gangs whose Job has waited longest for room come first. A Job may have become unwanted.
  while (room_ > 0 && !to_make_.empty()) {
    look_at(GangKey{to_make_.first()}, now, effects);
    (void)to_make_.take_first();
  }
  for (const GangKey& key : std::exchange(touched_, {})) look_at(key, now, effects);
  write_notes(budget, now, effects);
  return effects;
}

void GatedPods::look_at(const GangKey& key, base::Instant now, std::vector<Effect>& effects) {
  const auto found = gangs_.find(key);
  if (found == gangs_.end()) return;
  Gang& gang = found->second;
  look(key, gang, now, effects);
  // The Gang counts the tries of its Job's creation, so it stays until the answer has come.
  if (!gang.pods.empty() || !gang.jobs.empty() || gang.creation.is_under_way()) return;
  timers_.clear(key);
  gangs_.erase(found);
}

void GatedPods::look(const GangKey& key, Gang& gang, base::Instant now,
                     std::vector<Effect>& effects) {
  // 1. a Job that was deleted before a watch showed it is forgotten, and one that can no longer get
  //    all its pods goes away: the pods become free
  forget_unseen_jobs(key, gang, now);
  delete_broken_jobs(key, gang, now, effects);
  // 2. the pods that no Job lists are judged as a gang, whose Job is made if they are complete
  std::vector<PodPtr> free;
  for (const auto& [name, pod] : gang.pods) {
    if (!job_of_pod_.contains(pod->metadata.uid)) free.push_back(pod);
  }
  const Note note = free.empty() ? Note{} : note_of(key, gang, std::move(free), now, effects);
  // 3. the pods get the note, once the verdict has stood for kGatherPods. A controller creates the
  // pods of a gang one by one: without the delay each of n pods would get n notes ("1 of n", "2 of
  // n", …).
  if (std::exchange(gang.note, note) != note) gang.noted_at = now;
  if (now < gang.noted_at + kGatherPods)
    return timers_.set_no_later(key, gang.noted_at + kGatherPods);
  for (const auto& [name, pod] : gang.pods) {
    to_note_.try_emplace(kube::ObjectKey{key.ns, name}, base::Instant{});
  }
}

// No watch will say that they are gone.
void GatedPods::forget_unseen_jobs(const GangKey& key, const Gang& gang, base::Instant now) {
  // A copy: forget_job() takes the UID out of the set that is walked through.
  const std::set<std::string> uids = gang.jobs;
  for (const std::string& uid : uids) {
    const auto& since = jobs_.at(uid).unseen_since;
    if (!since) continue;
    if (now >= *since + kUnseenJob) {
      forget_job(uid);
    } else {
      timers_.set_no_later(key, *since + kUnseenJob);
    }
  }
}

void GatedPods::delete_broken_jobs(const GangKey& key, Gang& gang, base::Instant now,
                                   std::vector<Effect>& effects) {
  for (const std::string& uid : gang.jobs) {
    OurJob& job = jobs_.at(uid);
    if (!job.waits) continue;
    // Only pods that have their gate and are not being deleted are in gang.pods. As long as the Job
    // waits for nodes, all pods that it lists must be among them.
    const bool is_whole =
        std::ranges::all_of(job.object->spec.adopted, [&gang](const kube::AdoptedPod& pod) {
          const auto found = gang.pods.find(pod.name);
          return found != gang.pods.end() && found->second->metadata.uid == pod.uid;
        });
    if (is_whole) continue;
    // The Job is deleted rather than changed: spec.adopted is immutable, because it is the only
    // record of which pods are meant.
    if (now >= job.deleted_at + kDeleteJobAgain) {
      job.deleted_at = now;
      effects.emplace_back(DeleteJob{kube::key_of(job.object->metadata), uid});
      report_.log("gang of pods is broken",
                  {{"job", kube::to_string(kube::key_of(job.object->metadata))}});
    }
    timers_.set_no_later(key, job.deleted_at + kDeleteJobAgain);
  }
}

// Returns the note for the pods `free`, which have no Job; makes their Job if they are a whole
// gang.
GatedPods::Note GatedPods::note_of(const GangKey& key, Gang& gang, std::vector<PodPtr> free,
                                   base::Instant now, std::vector<Effect>& effects) {
  const std::string& name = key.gang.name;
  if (name.empty()) {
    return {"NotInGang", "the scheduling gate " + std::string{kube::kGangGate} +
                             " is there, but no label " + std::string{kube::kLabelGang} +
                             (adopts_->groups ? " or " + std::string{kube::kLabelPodGroup} : "") +
                             " that names the pod's gang"};
  }
  // Pods beyond those of a Job that lives: nothing can add them to it, and they are not a gang by
  // themselves. A Job that has ended does not stand in the way of a second gang under the same
  // label.
  for (const std::string& uid : gang.jobs) {
    const OurJob& job = jobs_.at(uid);
    if (job.ended) continue;
    if (job.waits && job.deleted_at != base::Instant{}) continue;  // it is being deleted
    return {"NotInGang", "gang \"" + name + "\" has all its pods already: Job " +
                             job.object->metadata.name + " stands for them"};
  }
  // `free` is sorted by name, since gang.pods is a map: the Job's name is derived from the UIDs in
  // that order, so a new leader asks for the same Job and finds the one that exists.
  PodGroupFacts facts;
  if (key.gang.by == GangName::By::kPodGroup) {
    const auto group = groups_.find({key.ns, name});
    if (group == groups_.end()) {
      return {"WaitingForPodGroup", "waits for PodGroup \"" + name + "\", which does not exist: " +
                                        "kubectl get podgroups.scheduling.x-k8s.io " + name};
    }
    facts = group->second;
    facts.grows = grows(key, gang, free, now);
  }
  PodGangVerdict verdict = translate_pod_gang(free, key.gang, facts);
  if (verdict.kind == PodGangVerdict::Kind::kIncomplete) {
    return {"WaitingForPods", verdict.message};
  }
  if (verdict.kind == PodGangVerdict::Kind::kRefused) return {"NotSupported", verdict.message};
  if (gang.creation.may_begin(now)) {
    if (to_make_.may_go(key, room_)) {
      // Begun before the effect is handed over: the next step must not ask a second time.
      gang.creation.begin();
      being_made_[kube::key_of(verdict.job.metadata)] = key;
      effects.emplace_back(CreateJob{std::move(verdict.job)});
    }
    // The last creation failed and its back-off runs. While one is under way its answer touches the
    // gang.
  } else if (!gang.creation.is_under_way()) {
    timers_.set_no_later(key, gang.creation.due());
  }
  if (gang.refusal.empty()) return {};
  return {"NotMade", "its Job cannot be made: " + gang.refusal};
}

// Returns true if pods have come or gone a moment ago.
bool GatedPods::grows(const GangKey& key, Gang& gang, const std::vector<PodPtr>& free,
                      base::Instant now) {
  std::vector<std::string> uids;
  uids.reserve(free.size());
  for (const PodPtr& pod : free) uids.push_back(pod->metadata.uid);
  if (uids != gang.gathered) {
    gang.gathered = std::move(uids);
    gang.gathered_at = now;
  }
  if (now >= gang.gathered_at + kGatherPods) return false;
  timers_.set_no_later(key, gang.gathered_at + kGatherPods);
  return true;
}

// Returns why the pod still has its gate; nullopt if its Job waits in the queue, which says why.
std::optional<GatedPods::Note> GatedPods::wanted_note(const kube::Pod& pod,
                                                      base::Instant now) const {
  // Without its gate, or while it is being deleted, the pod waits for nothing.
  const auto found = gangs_.find(gang_of_pod(pod));
  if (found == gangs_.end() || !found->second.pods.contains(pod.metadata.name)) return std::nullopt;
  const auto of = job_of_pod_.find(pod.metadata.uid);
  if (of != job_of_pod_.end()) {
    const OurJob& job = jobs_.at(of->second);
    if (!job.ended) return std::nullopt;
    return Note{"JobEnded", "its Job " + job.object->metadata.name + " has ended as " + *job.ended +
                                " before the pod got a node; delete the pod, or the Job to queue "
                                "it again"};
  }
  // The same delay as in look(). This is also asked for pods whose note came from a watch event.
  const Gang& gang = found->second;
  if (gang.note.reason.empty() || now < gang.noted_at + kGatherPods) return std::nullopt;
  return gang.note;
}

// Writes the notes that are wrong, as far as the budget goes; the other pods stay in to_note_. Each
// pod is written once: after a write the watch shows the pod with its note, which queues it again,
// so a verdict that changed in the meantime is written then.
void GatedPods::write_notes(InformBudget& budget, base::Instant now, std::vector<Effect>& effects) {
  for (auto at = to_note_.begin(); at != to_note_.end() && budget.has_one();) {
    if (at->second > now) {
      ++at;
      continue;
    }
    // Present: to_note_ has only keys of pods_, and forget_pod() empties both.
    const PodPtr pod = pods_.at(at->first);
    at = to_note_.erase(at);
    const std::optional<Note> wanted = wanted_note(*pod, now);
    const kube::Condition* stored = waiting_of(*pod);
    // A condition with a new time but the same words would be a write for nothing, so only the
    // words are compared.
    const bool is_right = wanted ? stored != nullptr && stored->reason == wanted->reason &&
                                       stored->message == wanted->message
                                 : stored == nullptr;
    if (is_right || !noting_.insert(pod->metadata.uid).second) continue;
    NotePod effect{.pod = kube::key_of(pod->metadata),
                   .uid = pod->metadata.uid,
                   .type = std::string{kube::kPodWaiting}};
    if (wanted) {
      effect.note = kube::Condition{.type = effect.type,
                                    .status = kube::ConditionStatus::kTrue,
                                    .last_transition_time = now,
                                    .reason = wanted->reason,
                                    .message = wanted->message};
    }
    effects.emplace_back(std::move(effect));
    budget.spend_one();
  }
}

// Linear in the pods whose notes wait for the budget. kLookAgain keeps the loop from spinning while
// the budget is empty.
base::Instant GatedPods::next_due(base::Instant now) const {
  base::Instant due = touched_.empty() ? base::kNever : now;
  due = std::min(due, timers_.next().value_or(base::kNever));
  for (const auto& [key, at] : to_note_) due = std::min(due, at);
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
