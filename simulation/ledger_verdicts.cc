// Compares how a job is said to have ended with what its programs did.
#include <algorithm>
#include <set>
#include <string>

#include "simulation/ledger.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

// For seconds that are cut off, and the drift of a clock within a round.
constexpr Time kClockSlack = std::chrono::seconds{5};
// That a fault makes a write take (plan.cc).
constexpr Time kSlowWriteMax = std::chrono::seconds{15};

}  // namespace

void Ledger::program_refused(const Program& program) {
  facts_of(program).refused = true;
}

// The program's result is unknown, so it counts as lost.
void Ledger::end_untold(const Program& program) {
  facts_of(program).lost = true;
}

// It may have ended before, which no leader may have seen.
void Ledger::pod_lost(const Program& program) {
  forget_success({program.name, program.job_uid, program.start, program.task, now_});
}

// The Node object goes within `lasts`, and pods that were placed there until then are lost.
void Ledger::node_replaced(const std::string& node, Time lasts) {
  suffered_.insert(node);
  gone_until_[node] = now_ + lasts;
}

Ledger::StartFacts& Ledger::facts_of(const Program& program) {
  return starts_[program.job_uid][program.start];
}

// Returns what happened to the pods of the job's present start.
//
// * failed: a program ended with another code than 0, or was killed
// * lost: its machine went off, its pod object was deleted by force or before its program had
//   ended, or its Node was deleted. A kubelet that is cut off is not one: Kubernetes gives nothing
//   up for it (architecture.md 3). So is a gang whose next pods were kept off a cordoned node.
// * refused: kubelet did not take a pod, or a start took longer than it may: the job's, or that of
//   a pod that follows another
Ledger::StartFacts Ledger::happened_to(const JobFacts& facts) {
  const kube::JobStatus& status = facts.job.status;
  StartFacts happened = starts_[facts.job.metadata.uid][status.starts.value_or(0)];
  for (const std::string& node : nodes_of(facts.allocation)) {
    const auto gone = gone_until_.find(node);
    if (gone != gone_until_.end() && facts.start_at < gone->second) happened.lost = true;
    const auto cordoned = cordoned_until_.find(node);
    const bool was_cordoned =
        cordoned != cordoned_until_.end() && facts.start_at < cordoned->second;
    if (facts.job.spec.completions && was_cordoned) happened.lost = true;
  }
  const auto timeout = facts.job.spec.lifecycle.start_timeout;
  if (!timeout) return happened;
  // Counted from the decision, by the operator's clock. If writes are slow it is stored later, and
  // not before the write of the job's status that was under way. A new leader knows the second in
  // which the job was allocated.
  const bool was_slow = facts.start_at <= faults_until_;
  const Time early =
      (was_slow ? 2 * kSlowWriteMax : Time{0}) + clock_steps_ + std::chrono::seconds{1};
  const auto is_over = [&](Time since) { return now_ + kSample + early >= since + *timeout; };
  if (facts.ready_at == kNoTime) {
    happened.refused = happened.refused || is_over(facts.start_at);
  } else if (facts.job.spec.completions) {
    happened.refused =
        happened.refused || std::any_of(pods_.begin(), pods_.end(), [&](auto& one) {
          const auto& [uid, pod] = one;
          // While no API server answered, kubelet could not say that it runs.
          const bool is_known = pod.runs_at != kNoTime && now_ >= pod.runs_at + kHearsWithin;
          return pod.job_uid == facts.job.metadata.uid && (!ran_.contains(uid) || !is_known) &&
                 pod.start == status.starts.value_or(0) && is_over(pod.made_at);
        });
  }
  return happened;
}

// Returns true if the present start was stored before etcd was restored, or soon after: the pods
// that the operator finds then come from another past.
bool Ledger::is_of_a_restore(const JobFacts& facts) const {
  return facts.start_at < restored_at_ + kAfterRestore;
}

// Checks that the reason of an ending that the operator saw, and did not decide, is what happened.
// For a loss it mostly is the only trace: the job waits again.
void Ledger::on_ending(const JobFacts& facts) {
  const std::int64_t start = facts.job.status.starts.value_or(0);
  endings_.insert({facts.job.metadata.uid, start});
  const kube::EndingVerdict verdict = facts.job.status.ending->verdict;
  const bool by_its_programs = verdict == kube::EndingVerdict::kFailed;
  if (!by_its_programs) starts_[facts.job.metadata.uid][start].over = true;
  if (is_of_a_restore(facts)) return;
  const std::string& reason = facts.job.status.ending->reason;
  const StartFacts happened = happened_to(facts);
  // The pod that took too long is deleted before the verdict is stored.
  starts_[facts.job.metadata.uid][facts.job.status.starts.value_or(0)].refused = happened.refused;
  const std::string name = title_of(facts.job);
  if (reason == "LostMember") {
    ++tally_.looked["verdict of a loss"];
    if (!happened.lost && !happened.refused) {
      find("verdict", "job " + name + " ends for a lost pod, and has lost none");
    }
  } else if (reason == "NonZeroExitCode") {
    ++tally_.looked["verdict of a failure"];
    if (!has_failed(happened, facts.job)) {
      find("verdict", "job " + name + " ends for a failed program, and none has failed");
    }
  }
}

// Returns true if a start may end as failed. A pod that is refused ends a job so only if its pods
// follow one another or it is not to be requeued: the start of any other is undone.
bool Ledger::has_failed(const StartFacts& happened, const kube::Job& job) {
  const bool ends = job.spec.completions || !job.spec.lifecycle.requeue.value_or(true);
  return happened.failed || (ends && happened.refused);
}

// Checks a final state that says that something went wrong.
void Ledger::check_failure(const JobFacts& facts) {
  const kube::Job& job = facts.job;
  const std::string text = "job " + title_of(job) + " is " + state_of(job);
  const StartFacts happened = happened_to(facts);
  const bool excused = is_of_a_restore(facts);
  ++tally_.looked["verdict " + state_of(job)];
  switch (*job.status.state) {
    case kube::JobState::kFailed:
      if (!excused && !has_failed(happened, job)) {
        find("verdict", text + ", none of its programs has failed");
      }
      return;
    // A pod that follows another and is refused is a lost member, too: without a queue to go back
    // to, as when the partition was deleted, that is the end.
    case kube::JobState::kNodeFail:
      if (!excused && !happened.lost && !(job.spec.completions && happened.refused)) {
        find("verdict", text + ", and has lost no node and no pod");
      }
      return;
    case kube::JobState::kTimeout:
      return check_timeout(facts);
    // No partition of these rounds has a grace time, and no job a deadline or a limit of memory. A
    // victim whose partition was deleted has no queue to go back to.
    case kube::JobState::kPreempted:
      if (plan_.preempt_mode != "Cancel" && job.spec.lifecycle.requeue.value_or(true) &&
          !is_unsliced(job.metadata.uid, job.status.starts.value_or(0))) {
        find("verdict", text + ", preemption requeues or suspends it");
      }
      return;
    case kube::JobState::kOutOfMemory:
    case kube::JobState::kDeadline:
      return find("verdict", text + ", and has no such limit");
    case kube::JobState::kCompleted:
    case kube::JobState::kCancelled:
    case kube::JobState::kPending:
    case kube::JobState::kRunning:
    case kube::JobState::kSuspended:
      return;
  }
}

std::optional<base::Duration> Ledger::least_limit(const JobFacts& facts) const {
  const auto found = least_limits_.find(facts.job.metadata.uid);
  return found == least_limits_.end() ? std::nullopt : std::optional{found->second};
}

// Compared with the least limit that its user ever gave it: one that was raised a moment ago may
// not be known yet. A job has not run for longer than there has been time since its start, whatever
// a clock says; an operator's may be followed as far as it was set, and drifts.
void Ledger::check_timeout(const JobFacts& facts) {
  const kube::Job& job = facts.job;
  const base::Duration ran = job.status.run_time ? job.status.run_time->elapsed : base::Duration{0};
  const std::optional<base::Duration> limit = least_limit(facts);
  if (!limit) {
    find("verdict", "job " + title_of(job) + " is Timeout and has no limit");
  } else if (ran < *limit) {
    find("verdict",
         "job " + title_of(job) + " is Timeout after " + text_of(ran) + " of " + text_of(*limit));
  }
  if (!limit || is_of_a_restore(facts)) return;
  ++tally_.looked["verdict in time"];
  const Time passed = now_ - facts.start_at;
  if (passed + clock_steps_ + kClockSlack < *limit) {
    find("verdict in time", "job " + title_of(job) + " is Timeout " + text_of(passed) +
                                " after its start, its limit is " + text_of(*limit));
  }
}

}  // namespace simulation
