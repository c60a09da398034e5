// The knowledge of a new leader (architecture.md 3): jobs from their objects, lists and rotation
// from the timetables that were published.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "scheduler/engine/engine.h"

namespace sched {
namespace {

HoldBy hold_of(Reason reason) {
  if (reason == Reason::kJobHoldMaxRequeue) return HoldBy::kMaxRequeue;
  if (reason == Reason::kLaunchFailedRequeuedHeld) return HoldBy::kLaunchFailed;
  return HoldBy::kAdmin;
}

}  // namespace

// One job as its object has it. Jobs come in the order of their numbers, which is the order of the
// job table. The caller has written the endings, claims and holds that were decided; nothing is
// decided again here.
void Engine::restore_job(const RestoredJob& from) {
  Job& job = books_.add(from.request);
  job.state = from.state;
  job.submit_time = from.request.submit_time;
  job.restarts = from.restarts;
  job.node_failures = from.node_failures;
  job.exit_code = from.exit_code;
  if (from.held_by_system) job.held.set(hold_of(*from.held_by_system));
  if (!from.partition || !from.allocation) hold_as_asked(job);
  if (from.retry) {
    job.retry_at = from.retry->at;
    job.avoid_nodes = from.retry->nodes;
    job.avoid_until = from.retry->nodes_until;
  }
  job.was_tested = !job.held;
  job.priority = from.priority ? *from.priority : priorities_.next_basic(job.request);
  priorities_.restore_basic(job.request, job.priority);
  job.association = priorities_.association_of(job.request);
  resource_limits_.submitted(job, 1);
  if (from.eligible_time) job.eligible_time = *from.eligible_time;
  // Without a placement that was written down it waits, whatever state its object names.
  if (!from.partition || !from.allocation) {
    job.state = JobState::kPending;
    // A requeue delay that was running goes on. A begin time is in the request.
    const bool begins_then = from.eligible_time == from.request.begin_time;
    if (from.eligible_time && *from.eligible_time > now_ && !begins_then) {
      job.not_before = from.eligible_time;
    }
    if (from.claim && from.claim_until > now_) {
      books_.restore_claim(job, *from.claim, from.claim_until);
    }
    admission_.admit(job, now_);
    return;
  }
  job.partition = from.partition;
  job.allocation = *from.allocation;
  // Not stored, but it follows from the partition and the request.
  job.sharing = resolve_sharing(cluster_.parameters().select, cluster_.partition(*job.partition),
                                job.request.sharing);
  job.allocated_at = from.allocated_at;
  job.ready = from.ready;
  job.start_time = from.start_time;
  job.time_limit =
      from.time_limit ? from.time_limit : limits_.limit_of(job, *job.partition, from.allocated_at);
  // It was cut to the deadline when the job became ready.
  if (job.ready) job.time_limit = TimeLimits::until_deadline(job, job.time_limit, now_);
  job.clock.run = from.run_time;
  job.clock.suspended = from.suspend_time;
  job.clock.as_of = from.times_as_of;
  job.user_suspended = job.cores_released = from.user_suspended;
  if (job.user_suspended) job.state = JobState::kSuspended;
  if (from.ending || from.ending_state) restore_ending(job, from);
  books_.restore(job);
}

// `kill_at` is what was decided (begin_ending); the grace time ended a kill wait before it.
void Engine::restore_ending(Job& job, const RestoredJob& from) {
  Ending ending;
  ending.verdict = from.ending;
  ending.preemptor = from.preemptor;
  ending.exit_code = from.exit_code;
  ending.final_state = from.ending_state.value_or(JobState::kCancelled);
  ending.node_failed = from.ending && from.ending_state == JobState::kNodeFail;
  // Only a requeue brings the job back to the queue; every other verdict is a state in which it
  // stays.
  if (from.ending) {
    switch (*from.ending) {
      case EndingVerdict::kRequeue:
        ending.final_state = JobState::kPending;
        break;
      case EndingVerdict::kPreempted:
        ending.final_state = JobState::kPreempted;
        break;
      case EndingVerdict::kTimeout:
        ending.final_state = JobState::kTimeout;
        break;
      case EndingVerdict::kCancelled:
        ending.final_state = JobState::kCancelled;
        break;
      case EndingVerdict::kDeadline:
        ending.final_state = JobState::kDeadline;
        break;
    }
  }
  const base::Duration wait = cluster_.parameters().kill_wait;
  ending.grace_end = from.ending && from.kill_at ? *from.kill_at - wait : now_;
  // A grace time that ended while there was no leader: its cores are free from the beginning.
  ending.killed = ending.grace_end <= now_;
  if (!ending.killed) grace_timers_.emplace(ending.grace_end, job.id);
  job.ending = ending;
}

// 1. Nodes and configuration are there already; jobs come into the books.
// 2. Each job's run time up to now, from the plan of any of its nodes: all of them were rewritten
//    together.
// 3. The gang takes up the lists and the rotation that were published.
// 4. Timers. No decision is made before the next event.
void Engine::restore_from_published(base::Instant now, std::vector<RestoredJob> jobs,
                                    std::vector<NodePlan> published) {
  CHECK(books_.table().size() == 0);
  now_ = std::max(now_, now);
  turns_->go_to(now_, false);
  settle();
  turns_->configure();
  for (const RestoredJob& job : jobs) restore_job(job);
  std::map<JobId, const NodePlan*> plan_of;  // any of its nodes' plans
  for (NodePlan& plan : published) {
    // A node that is gone tells nothing; the job's other nodes have the same turns.
    if (!cluster_.exists(plan.node)) continue;
    for (const NodeTimetableEntry& entry : plan.entries) plan_of.emplace(entry.job, &plan);
  }
  for (const auto& [order, job] : books_.allocated()) restore_clock(*job, plan_of);
  turns_->restore(published);
  for (const auto& [order, job] : books_.allocated()) {
    turns_->mark_nodes(*job);
    limits_.arm(*job, now_);
  }
  books_.changed();
}

// Priorities have come out anew, so the queue is put in order before the first pass.
void Engine::restore_usage(const UsageState& state, const std::vector<EndedJob>& ended) {
  priorities_.restore_usage(state, ended, now_);
  begin_priorities(false, [this](Job& job) { return priorities_.set(job, now_); });
  finish_priorities();
}

// Run time up to now, from the object's figure and from what was published since. Two figures may
// be known, each as of its own instant: that of the job's object and that of a published plan. The
// newer of them is exact, and the plan's run(t) says what was added since. There are three cases:
//
//   the object is newer        go on from its figure
//   the plan is newer          go on from the plan's figure
//   the plan begins later      it was published ahead; go back from its figure to now
void Engine::restore_clock(Job& job, const std::map<JobId, const NodePlan*>& plan_of) {
  // Its processes have ended or are ending: that is not charged (kill()).
  if (!job.ready || job.completing()) return job.clock.to(JobClock::Phase::kIdle, now_);
  if (job.user_suspended) {
    job.clock.phase = JobClock::Phase::kSuspended;
    job.clock.as_of = std::min(job.clock.as_of, now_);
    return;
  }
  const auto at = plan_of.find(job.id);
  const base::Instant from = std::min(job.clock.as_of, now_);
  if (at == plan_of.end()) {  // it was never frozen
    job.clock.run += now_ - from;
  } else {
    const NodePlan& plan = *at->second;
    for (std::size_t i = 0; i < plan.entries.size(); ++i) {
      const NodeTimetableEntry& entry = plan.entries[i];
      if (entry.job != job.id) continue;
      const auto pod = static_cast<std::uint16_t>(i);
      const auto ran = [&](base::Instant begin, base::Instant end) {
        return timetable::run_time(plan.timetable, pod, begin, end);
      };
      // The later of the two figures is exact; from there on the plan says it.
      base::Duration run = job.clock.run;
      if (from >= plan.as_of) {
        run += ran(from, now_);
      } else if (now_ >= plan.as_of) {
        run = entry.ran + ran(plan.as_of, now_);
      } else {
        run = entry.ran - ran(now_, plan.as_of);
      }
      const base::Duration before = job.clock.run;
      // A figure that was told once is not taken back. The rest of the time the job stood still.
      job.clock.run = std::max(run, before);
      job.clock.suspended += std::max(base::Duration{0}, now_ - from - (job.clock.run - before));
      break;
    }
  }
  job.clock.as_of = now_;
  job.clock.phase = JobClock::Phase::kRunning;
}

}  // namespace sched
