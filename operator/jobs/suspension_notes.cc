#include "operator/jobs/suspension_notes.h"

#include <algorithm>

#include "api/wellknown.h"
#include "operator/gang/gang_observation.h"
#include "translation/reason_names.h"

namespace control {
namespace {

constexpr base::Duration kRetry = std::chrono::seconds{10};

// Returns the condition that this part writes; null if the pod does not have it.
const kube::Condition* note_of(const kube::Pod& pod) {
  return kube::find_condition(pod.status.conditions, kube::kPodSuspended);
}

}  // namespace

// Returns why the job's pods stand still for long, in words for users of kubectl; nullopt if they
// do not. Turns are not suspensions: a pod that is off for a slice would have its condition
// rewritten all day.
std::optional<Suspension> suspension_of(const JobRecord& job) {
  const kube::JobStatus& wanted = job.wanted();
  const bool is_suspended = job.is_allocated() && !wanted.ending && !job.gang->never_frozen &&
                            wanted.state == kube::JobState::kSuspended;
  if (is_suspended && wanted.reason == reason_name(sched::Reason::kUser)) {
    return Suspension{wanted.reason,
                      "its job is suspended by its user, so its processes do not run; kubectl gang "
                      "resume " +
                          job.key.name + " lets them run again"};
  }
  if (is_suspended && wanted.reason == reason_name(sched::Reason::kPreempted)) {
    return Suspension{
        wanted.reason,
        "its job is suspended for jobs of higher priority, so its processes do not run"};
  }
  return std::nullopt;
}

void SuspensionNotes::observe(const std::string& job_uid,
                              const std::optional<Suspension>& suspension, base::Instant now) {
  const auto before = suspended_.find(job_uid);
  if (!suspension) {
    if (before == suspended_.end()) return;
    // Resumed: the conditions are removed without delay, because they would now say something
    // false.
    suspended_.erase(before);
    look_at_[job_uid] = now;
    return;
  }
  // The time since which it is suspended stays.
  if (before != suspended_.end() && before->second.why == *suspension) return;
  suspended_[job_uid] = {*suspension, now};
  // Suspensions are often short: a condition is worth its writes only if it lasts.
  look_at_[job_uid] = now + kNotedAfter;
}

void SuspensionNotes::observe_pod(const std::string& job_uid, const kube::Pod& pod,
                                  base::Instant now) {
  // Most pods are of jobs that are not suspended and carry no condition: nothing is looked at for
  // them.
  if (note_of(pod) == nullptr && !suspended_.contains(job_uid)) return;
  // A look that is due later (kNotedAfter) is not brought forward by a pod that changes.
  const auto found = look_at_.find(job_uid);
  if (found == look_at_.end()) look_at_[job_uid] = now;
}

// Forgets a job that has ended, or is gone.
void SuspensionNotes::drop_job(const std::string& job_uid) {
  suspended_.erase(job_uid);
  look_at_.erase(job_uid);
}

// Takes at most half of the budget, so that statuses are written, too; with less than two tokens
// the two take turns.
std::vector<Effect> SuspensionNotes::due(InformBudget& budget, base::Instant now,
                                         const PodsOf& pods_of) {
  std::vector<Effect> effects;
  // Half of the budget does not pay for a single write if there are fewer than two tokens.
  if (budget.tokens() < 2 && (gives_way_ = !gives_way_)) return effects;
  const double left = budget.tokens() / 2;
  while (budget.has_one() && budget.tokens() > left) {
    auto effect = next(now, pods_of);
    if (!effect) break;
    budget.spend_one();
    effects.emplace_back(std::move(*effect));
  }
  return effects;
}

std::optional<NotePod> SuspensionNotes::next(base::Instant now, const PodsOf& pods_of) {
  for (auto at = look_at_.begin(); at != look_at_.end();) {
    if (at->second > now) {
      ++at;
      continue;
    }
    if (const Pods* pods = pods_of(at->first)) {
      // One pod per call; the entry stays, so the next call finds the other pods of the job.
      if (auto effect = next_of(at->first, *pods, now)) return effect;
    }
    at = look_at_.erase(at);  // nothing is left to write for its pods
  }
  return std::nullopt;
}

// Takes the next pod whose condition is not what it should be. Pods of a job that was suspended a
// moment ago are left as they are: they may have the condition of an earlier suspension, which then
// is right again soon.
std::optional<NotePod> SuspensionNotes::next_of(const std::string& job_uid, const Pods& pods,
                                                base::Instant now) {
  const auto suspended = suspended_.find(job_uid);
  const bool is_long =
      suspended != suspended_.end() && now >= suspended->second.since + kNotedAfter;
  for (const auto& [name, pod] : pods) {
    if (is_finished(*pod) || pod->metadata.deletion_timestamp) continue;
    const kube::Condition* note = note_of(*pod);
    // Nothing is said about pods whose condition is right already, for example because an earlier
    // leader wrote it.
    const bool is_right = is_long ? note != nullptr && note->reason == suspended->second.why.reason
                                  : note == nullptr || suspended != suspended_.end();
    // One write at a time for each pod: the answer, or the watch, decides about the next.
    if (is_right || !in_flight_.insert(pod->metadata.uid).second) continue;
    NotePod effect{.pod = kube::key_of(pod->metadata),
                   .uid = pod->metadata.uid,
                   .job_uid = job_uid,
                   .note = std::nullopt};
    if (is_long) {
      effect.note = kube::Condition{.type = std::string{kube::kPodSuspended},
                                    .status = kube::ConditionStatus::kTrue,
                                    .last_transition_time = suspended->second.since,
                                    .reason = suspended->second.why.reason,
                                    .message = suspended->second.why.message};
    }
    return effect;
  }
  return std::nullopt;
}

// After a success the watch shows the condition, and the pod is right then.
void SuspensionNotes::answered(const PodNoted& outcome, base::Instant now) {
  in_flight_.erase(outcome.uid);
  if (outcome.status.ok() || outcome.status.error().code == base::Code::kNotFound) return;
  // A conflict as well: another client has changed the pod, and kRetry later its new version is
  // known.
  look_at_[outcome.job_uid] = now + kRetry;
}

// Not at once: a look that finds no budget would make the loop spin.
base::Instant SuspensionNotes::next_due(base::Instant now) const {
  base::Instant due = base::kNever;
  for (const auto& [uid, at] : look_at_) due = std::min(due, at);
  return due == base::kNever ? due : std::max(due, now + InformBudget::kLookAgain);
}

}  // namespace control
