// The knowledge of a new leader (architecture.md 3): jobs from their objects, lists and rotation
// from the timetables that were published.
#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "scheduler/engine/engine.h"

namespace sched {

// One job as its object has it. Jobs come in the order of their numbers, which is the order of the
// job table. The caller has written the endings, claims and holds that were decided; nothing is
// decided again here.
void Engine::restore_job(JobFacts facts) {
  Job& job = books_.add(std::move(facts));
  job.held.clear(HoldBy::kImpossible);  // that is found out again
  if (!job.allocated()) hold_as_asked(job);
  Dependencies::fit_terms(job);
  job.factors.was_tested = !job.held;
  if (job.priority == Priority{}) job.priority = priorities_.next_basic(*job.request);
  priorities_.restore_basic(*job.request, job.priority);
  job.factors.association = priorities_.association_of(*job.request);
  resource_limits_.submitted(job, 1);
  const auto claim = std::exchange(job.claim, std::nullopt);
  if (job.is_array() && job.count() == 0) return;
  // Without a placement that was written down it waits, whatever state its object names.
  if (!job.allocated()) {
    job.state = JobState::kPending;
    if (claim && job.claim_until > now_) books_.restore_claim(job, *claim, job.claim_until);
    admission_.admit(job, now_);
    return;
  }
  // Not stored, but it follows from the partition and the request.
  job.sharing = resolve_sharing(cluster_.parameters().select, cluster_.partition(*job.partition),
                                job.request->sharing);
  // It was cut to the deadline when the job became ready.
  if (job.ready) job.time_limit = TimeLimits::until_deadline(job, job.time_limit, now_);
  job.cores_released = job.user_suspended;
  if (job.user_suspended) job.state = JobState::kSuspended;
  if (job.ending) restore_ending(job);
  books_.restore(job);
}

// A grace time that ended while there was no leader: its cores are free from the beginning.
void Engine::restore_ending(Job& job) {
  job.ending->killed = job.ending->grace_end <= now_;
  if (!job.ending->killed) grace_timers_.emplace(job.ending->grace_end, job.id);
}

// 1. Nodes and configuration are there already; jobs come into the books.
// 2. Each job's run time up to now, from the plan of any of its nodes: all of them were rewritten
//    together.
// 3. The gang takes up the lists and the rotation that were published.
// 4. Timers, and what ends of other jobs meanwhile mean to waiting jobs. No other decision
//    is made before the next event.
void Engine::restore_from_published(base::Instant now, std::vector<JobFacts> jobs,
                                    std::vector<NodePlan> published,
                                    const std::vector<KnownJob>& known) {
  CHECK(books_.table().size() == 0);
  now_ = std::max(now_, now);
  turns_->go_to(now_, false);
  settle();
  turns_->configure();
  for (JobFacts& job : jobs) restore_job(std::move(job));
  for (const auto& [order, job] : books_.table().all()) {  // now that it is known what runs of them
    if (!job->is_array()) continue;
    reopen(*job);
    // The array's last task has ended, and nothing else was stored.
    if (job->count() == 0 && job->tasks->own.empty()) {
      books_.finish(*job, state_of(job->array->outcomes));
    }
  }
  std::map<JobId, KnownJob> known_by_id;
  for (const KnownJob& each : known) known_by_id.emplace(each.job, each);
  for (const auto& [order, job] : books_.table().all()) {
    if (job->pending() && job->count() > 0) dependencies_.restore(*job, known_by_id);
  }
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
  settle_dependencies();
  books_.changed();
}

// Priorities have come out again, so the queue is put in order before the first pass.
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
  // The processes have ended or are ending: that is not charged (kill()).
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
      // A time that was reported once is not taken back. The rest of the time the job stood still.
      job.clock.run = std::max(run, before);
      job.clock.suspended += std::max(base::Duration{0}, now_ - from - (job.clock.run - before));
      break;
    }
  }
  job.clock.as_of = now_;
  job.clock.phase = JobClock::Phase::kRunning;
}

}  // namespace sched
