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
  if (job.priority == Priority{} && priorities_.is_multifactor()) {
    job.priority = job.request->priority.value_or(Priority{1});  // restore_usage() works it out
  } else {
    if (job.priority == Priority{}) job.priority = priorities_.next_basic(*job.request);
    priorities_.restore_basic(*job.request, job.priority);
  }
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
// 2. Each job's run time up to now, from the plans of its nodes. They are rewritten one after the
//    other, and a crash may fall between: the node on which it ran longest counts.
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
  std::map<NodeIndex, const NodePlan*> plans;
  for (const NodePlan& plan : published) {
    // A node that is gone tells nothing.
    if (cluster_.exists(plan.node)) plans.emplace(plan.node, &plan);
  }
  for (const auto& [order, job] : books_.allocated()) restore_clock(*job, plans);
  turns_->restore(published);
  for (const auto& [order, job] : books_.allocated()) {
    turns_->mark_nodes(*job);
    limits_.arm(*job, now_);
  }
  settle_dependencies();
  books_.changed();
}

// The priorities of waiting jobs come out again as at the end of a period, so that INCREASE_ONLY
// lowers none that was stored. The queue is put in order before the first pass.
void Engine::restore_usage(const UsageState& state, const std::vector<EndedJob>& ended) {
  priorities_.restore_usage(state, ended, now_);
  begin_priorities(false, [this](Job& job) { return priorities_.set_again(job, now_); });
  finish_priorities();
}

namespace {

// A job in the plan of one of its nodes.
struct Listed {
  const NodePlan* plan;
  const NodeTimetableEntry* entry;
  std::uint16_t pod;

  base::Duration ran(base::Instant begin, base::Instant end) const {
    return timetable::run_time(plan->timetable, pod, begin, end);
  }
};

// Returns the job in the plans of its nodes.
std::vector<Listed> listed_in(const std::map<NodeIndex, const NodePlan*>& plans, const Job& job) {
  std::vector<Listed> listed;
  for (const NodeAllocation& use : job.allocation.nodes) {
    const auto at = plans.find(use.node);
    if (at == plans.end()) continue;
    const auto& entries = at->second->entries;
    const auto entry = std::ranges::find(entries, job.id, &NodeTimetableEntry::job);
    if (entry == entries.end()) continue;
    listed.push_back({at->second, &*entry, static_cast<std::uint16_t>(entry - entries.begin())});
  }
  return listed;
}

// Returns the run time as of `t` by the plan of one node. Two figures are known, each as of its own
// instant: that of the job's object and that of the published plan. The newer of them is exact, and
// the plan's run(t) says what was added since. There are three cases:
//
//   the object is newer        go on from its figure
//   the plan is newer          go on from the plan's figure
//   the plan begins later      it was published ahead; go back from its figure
base::Duration run_time_at(base::Instant t, const Listed& in, const JobClock& clock) {
  const base::Instant as_of = in.plan->as_of;
  if (clock.as_of >= as_of) return clock.run + in.ran(std::min(clock.as_of, t), t);
  return t >= as_of ? in.entry->ran + in.ran(as_of, t) : in.entry->ran - in.ran(t, as_of);
}

// Returns the run time by a plan of one of the job's nodes that lists no pods: there the job ran
// all the time since it was written, and since the newest exact figure.
base::Duration run_time_unlisted(base::Instant now, const NodePlan& plan,
                                 const std::vector<Listed>& listed, const JobClock& clock) {
  base::Instant since = std::max(clock.as_of, plan.as_of);
  for (const Listed& in : listed) {
    if (in.plan->as_of <= now) since = std::max(since, in.plan->as_of);
  }
  if (since >= now) return base::Duration{0};
  base::Duration run = clock.run;
  for (const Listed& in : listed) run = std::max(run, run_time_at(since, in, clock));
  return run + (now - since);
}

}  // namespace

// Run time up to now, from the object's figure and from what was published since.
void Engine::restore_clock(Job& job, const std::map<NodeIndex, const NodePlan*>& plans) {
  // The processes have ended or are ending: that is not charged (kill()).
  if (!job.ready || job.completing()) return job.clock.to(JobClock::Phase::kIdle, now_);
  job.clock.as_of = std::min(job.clock.as_of, now_);
  if (job.user_suspended) {
    job.clock.phase = JobClock::Phase::kSuspended;
    return;
  }
  const base::Duration passed = now_ - job.clock.as_of;
  const std::vector<Listed> listed = listed_in(plans, job);
  // A time that was reported once is not taken back.
  base::Duration run = job.clock.run;
  if (listed.empty()) run += passed;  // it was never frozen
  for (const Listed& in : listed) run = std::max(run, run_time_at(now_, in, job.clock));
  for (const NodeAllocation& use : job.allocation.nodes) {
    const auto at = plans.find(use.node);
    if (listed.empty() || at == plans.end() || !at->second->entries.empty()) continue;
    run = std::max(run, run_time_unlisted(now_, *at->second, listed, job.clock));
  }
  // The rest of the time the job stood still.
  job.clock.suspended += std::max(base::Duration{0}, passed - (run - job.clock.run));
  job.clock.run = run;
  job.clock.as_of = now_;
  job.clock.phase = JobClock::Phase::kRunning;
}

}  // namespace sched
