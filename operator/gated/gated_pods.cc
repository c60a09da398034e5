#include "operator/gated/gated_pods.h"

#include <algorithm>
#include <utility>

#include "api/wellknown.h"
#include "operator/gang/pod_pin.h"
#include "operator/translate/pod_gang_translation.h"

namespace control {
namespace {

// The pods of a gang appear one after the other: they are told what they wait for once nothing has
// changed for so long.
constexpr base::Duration kGatherPods = std::chrono::seconds{5};
constexpr base::Duration kDeleteJobAgain = std::chrono::seconds{10};
constexpr base::Duration kNoteAgain = std::chrono::seconds{10};

const kube::Condition* waiting_of(const kube::Pod& pod) {
  return kube::find_condition(pod.status.conditions, kube::kPodWaiting);
}

std::string gang_label(const kube::Job& job) {
  const auto label = job.metadata.labels.find(std::string{kube::kLabelGang});
  return label == job.metadata.labels.end() ? "" : label->second;
}

bool is_final_refusal(base::Code code) {
  return code == base::Code::kInvalidArgument || code == base::Code::kPermissionDenied ||
         code == base::Code::kAlreadyExists;
}

}  // namespace

void GatedPods::observe(const kube::ObjectKey& key, const PodPtr& pod) {
  if (!adopts_) return;
  const bool is_gated = pod != nullptr && !pod->metadata.deletion_timestamp && has_gang_gate(*pod);
  const bool has_note = pod != nullptr && waiting_of(*pod) != nullptr;
  forget_pod(key);
  if (!is_gated && !has_note) return;
  pods_[key] = pod;
  if (has_note) to_note_.try_emplace(key, base::Instant{});
  if (!is_gated) return;
  const GangKey gang{key.ns, gang_of(*pod)};
  gangs_[gang].pods[key.name] = pod;
  touched_.insert(gang);
}

void GatedPods::forget_pod(const kube::ObjectKey& key) {
  const auto known = pods_.extract(key);
  if (!known) return;
  to_note_.erase(key);
  const GangKey gang{key.ns, gang_of(*known.mapped())};
  const auto found = gangs_.find(gang);
  if (found == gangs_.end() || found->second.pods.erase(key.name) == 0) return;
  touched_.insert(gang);
}

void GatedPods::observe_job(const JobRecord& job) {
  if (!job.is_adopted()) return;
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
  OurJob job{.gang = {object->metadata.ns, gang_label(*object)},
             .object = object,
             .waits = waits,
             .ended = std::move(ended)};
  if (const auto known = jobs_.find(uid); known != jobs_.end()) {
    job.deleted_at = known->second.deleted_at;
    forget_job(uid);  // its author may have changed its label, which names its gang
  }
  gangs_[job.gang].jobs.insert(uid);
  for (const kube::AdoptedPod& pod : object->spec.adopted) job_of_pod_[pod.uid] = uid;
  touched_.insert(job.gang);
  jobs_.emplace(uid, std::move(job));
}

void GatedPods::forget_job(const std::string& uid) {
  const auto known = jobs_.extract(uid);
  if (!known) return;
  const OurJob& job = known.mapped();
  for (const kube::AdoptedPod& pod : job.object->spec.adopted) {
    const auto of = job_of_pod_.find(pod.uid);
    if (of != job_of_pod_.end() && of->second == uid) job_of_pod_.erase(of);
    const auto freed = pods_.find({job.object->metadata.ns, pod.name});
    if (freed != pods_.end()) touched_.insert({freed->first.ns, gang_of(*freed->second)});
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
    if (!jobs_.contains(outcome.result->metadata.uid)) {
      put_job(std::make_shared<const kube::Job>(*outcome.result), true, std::nullopt);
    }
    return;
  }
  gang.creation.failed(now);
  const base::Error& error = outcome.result.error();
  gang.refusal = is_final_refusal(error.code) ? error.message : "";
  report_.warn("kubegang job not made",
               "of=pods job=" + kube::to_string(outcome.key) + " error=\"" + error.message + "\"");
}

void GatedPods::answered(const PodNoted& outcome, base::Instant now) {
  noting_.erase(outcome.uid);
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  for (const auto& [key, pod] : pods_) {
    if (pod->metadata.uid == outcome.uid) to_note_[key] = now + kNoteAgain;
  }
}

std::vector<Effect> GatedPods::due(InformBudget& budget, base::Instant now) {
  std::vector<Effect> effects;
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const GangKey key = timers_.extract(timers_.begin()).value().second;
    gangs_.at(key).timer = base::kNever;
    touched_.insert(key);
  }
  for (const GangKey& key : std::exchange(touched_, {})) {
    const auto found = gangs_.find(key);
    if (found == gangs_.end()) continue;
    Gang& gang = found->second;
    look(key, gang, now, effects);
    if (!gang.pods.empty() || !gang.jobs.empty() || gang.creation.is_under_way()) continue;
    timers_.erase({gang.timer, key});
    gangs_.erase(found);
  }
  write_notes(budget, now, effects);
  return effects;
}

void GatedPods::look(const GangKey& key, Gang& gang, base::Instant now,
                     std::vector<Effect>& effects) {
  delete_broken_jobs(key, gang, now, effects);
  std::vector<PodPtr> free;
  for (const auto& [name, pod] : gang.pods) {
    if (!job_of_pod_.contains(pod->metadata.uid)) free.push_back(pod);
  }
  const Note note = free.empty() ? Note{} : note_of(key, gang, std::move(free), now, effects);
  if (std::exchange(gang.note, note) != note) gang.noted_at = now;
  if (now < gang.noted_at + kGatherPods) return set_timer(key, gang, gang.noted_at + kGatherPods);
  for (const auto& [name, pod] : gang.pods) to_note_.try_emplace({key.ns, name}, base::Instant{});
}

void GatedPods::delete_broken_jobs(const GangKey& key, Gang& gang, base::Instant now,
                                   std::vector<Effect>& effects) {
  for (const std::string& uid : gang.jobs) {
    OurJob& job = jobs_.at(uid);
    if (!job.waits) continue;
    const bool is_whole =
        std::ranges::all_of(job.object->spec.adopted, [&gang](const kube::AdoptedPod& pod) {
          const auto found = gang.pods.find(pod.name);
          return found != gang.pods.end() && found->second->metadata.uid == pod.uid;
        });
    if (is_whole) continue;
    if (now >= job.deleted_at + kDeleteJobAgain) {
      job.deleted_at = now;
      effects.emplace_back(DeleteJob{kube::key_of(job.object->metadata), uid});
      report_.log("gang of pods is broken",
                  "job=" + kube::to_string(kube::key_of(job.object->metadata)));
    }
    set_timer(key, gang, job.deleted_at + kDeleteJobAgain);
  }
}

// What to tell the pods `free`, which have no Job; makes their Job if they are a whole gang.
GatedPods::Note GatedPods::note_of(const GangKey& key, Gang& gang, std::vector<PodPtr> free,
                                   base::Instant now, std::vector<Effect>& effects) {
  if (key.name.empty()) {
    return {"NotInGang", "the scheduling gate " + std::string{kube::kGangGate} +
                             " is there, but no label " + std::string{kube::kLabelGang} +
                             " that names the pod's gang"};
  }
  for (const std::string& uid : gang.jobs) {
    const OurJob& job = jobs_.at(uid);
    if (job.ended) continue;
    if (job.waits && job.deleted_at != base::Instant{}) break;  // it is being deleted
    return {"NotInGang", "gang \"" + key.name + "\" has all its pods already: Job " +
                             job.object->metadata.name + " stands for them"};
  }
  PodGangVerdict verdict = translate_pod_gang(free);
  if (verdict.kind == PodGangVerdict::Kind::kIncomplete) {
    return {"WaitingForPods", verdict.message};
  }
  if (verdict.kind == PodGangVerdict::Kind::kRefused) return {"NotSupported", verdict.message};
  if (gang.creation.may_begin(now)) {
    gang.creation.begin();
    being_made_[kube::key_of(verdict.job.metadata)] = key;
    effects.emplace_back(CreateJob{std::move(verdict.job)});
  } else if (!gang.creation.is_under_way()) {
    set_timer(key, gang, gang.creation.due());
  }
  if (gang.refusal.empty()) return {};
  return {"NotMade", "its Job cannot be made: " + gang.refusal};
}

// Returns why the pod still has its gate; nullopt if its Job waits in the queue, which says why.
std::optional<GatedPods::Note> GatedPods::wanted_note(const kube::Pod& pod,
                                                      base::Instant now) const {
  const auto found = gangs_.find({pod.metadata.ns, gang_of(pod)});
  if (found == gangs_.end() || !found->second.pods.contains(pod.metadata.name)) return std::nullopt;
  const auto of = job_of_pod_.find(pod.metadata.uid);
  if (of != job_of_pod_.end()) {
    const OurJob& job = jobs_.at(of->second);
    if (!job.ended) return std::nullopt;
    return Note{"JobEnded", "its Job " + job.object->metadata.name + " has ended as " + *job.ended +
                                " before the pod got a node; delete the pod, or the Job to queue "
                                "it again"};
  }
  const Gang& gang = found->second;
  if (gang.note.reason.empty() || now < gang.noted_at + kGatherPods) return std::nullopt;
  return gang.note;
}

void GatedPods::write_notes(InformBudget& budget, base::Instant now, std::vector<Effect>& effects) {
  for (auto at = to_note_.begin(); at != to_note_.end() && budget.has_one();) {
    if (at->second > now) {
      ++at;
      continue;
    }
    const PodPtr pod = pods_.at(at->first);
    at = to_note_.erase(at);
    const std::optional<Note> wanted = wanted_note(*pod, now);
    const kube::Condition* stored = waiting_of(*pod);
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

void GatedPods::set_timer(const GangKey& key, Gang& gang, base::Instant at) {
  if (gang.timer <= at) return;
  timers_.erase({gang.timer, key});
  gang.timer = at;
  timers_.emplace(at, key);
}

base::Instant GatedPods::next_due(base::Instant now) const {
  base::Instant due = touched_.empty() ? base::kNever : now;
  if (!timers_.empty()) due = std::min(due, timers_.begin()->first);
  for (const auto& [key, at] : to_note_) due = std::min(due, at);
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
