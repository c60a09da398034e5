#include "scheduler/engine/engine.h"

#include "base/check.h"
#include "scheduler/gang/own_turns.h"
#include "scheduler/preempt/rules.h"

namespace sched {

Engine::Engine(const Options& options)
    : Engine{options,
             [&](const Cluster& cluster, JobBooks& books, TurnEvents& events) {
               return std::make_unique<gang::OwnTurns>(cluster, books, events, options.publishes);
             },
             true} {}

Engine::Engine(const Options& options, const MakeTurns& make_turns, bool wakes)
    : priorities_per_step_{options.priorities_per_step},
      books_{cluster_},
      turns_{make_turns(cluster_, books_, *this)},
      limits_{cluster_, books_, *turns_},
      priorities_{cluster_, books_, *turns_},
      resource_limits_{cluster_, books_, priorities_.usage()},
      admission_{cluster_, books_, wakes},
      pass_{cluster_, groups_, books_, resource_limits_, admission_, *this},
      pass_schedule_{cluster_, books_, admission_.queue(), pass_},
      backfill_{cluster_, groups_, books_, resource_limits_, admission_, limits_, *turns_, *this},
      estimates_{
          cluster_, groups_, books_, resource_limits_, admission_, limits_, backfill_.lookahead()},
      backfill_schedule_{cluster_, books_, admission_.queue(), backfill_, estimates_} {
  // The books tell every start and end, whichever part has decided it.
  books_.on_begin([this](Job& job) { begun(job); });
  books_.on_end([this](Job& job) { about_to_end(job); });
  if (options.publishes) priorities_.keep_ends();
  if (!options.tells_starts) {
    backfill_.tell_no_plans();
    backfill_schedule_.tell_no_plans();
  }
  rebuild();
}

// 1. Bring the gang to `now`: what ran until here follows from the state before the event.
// 2. Settle nodes that were reported before, unless more of them may come.
// 3. Fire timers that are due, so that the event meets the state of this instant.
// 4. The event itself, and what follows for jobs that waited for others.
void Engine::step(base::Instant now, const Event& event) {
  CHECK(now >= now_, std::to_string(base::micros_since_epoch(now)));
  // The hardware of nodes decides which jobs run beside each other, not their memory, labels or
  // states.
  const auto* const node = std::get_if<NodeUpdate>(&event);
  const bool about_cluster = std::holds_alternative<Configure>(event) ||
                             std::holds_alternative<NodeRemove>(event) ||
                             (node != nullptr && cluster_.changes_topology(node->node));
  turns_->go_to(now, about_cluster);
  now_ = now;
  if (about_cluster) finish_priorities();  // they follow from the nodes and accounts of before
  // A cluster that starts up, or a relist, reports thousands of nodes one after the other. Things
  // that depend on all nodes are rebuilt once, with the first event that is about something else.
  const bool about_nodes =
      std::holds_alternative<NodeUpdate>(event) || std::holds_alternative<NodeRemove>(event);
  if (!about_nodes) {  // many nodes are settled once
    settle();
    fire_timers();
    settle_dependencies();
  }
  std::visit([this](const auto& each) { on(each); }, event);
  settle_dependencies();
  forget_ended_tasks();
}

std::vector<JobId> Engine::jobs() const {
  std::vector<JobId> ids;
  for (const auto& [order, job] : books_.table().all()) {
    if (!is_terminal(job->state)) ids.push_back(job->id);
  }
  return ids;
}

// In the order in which a pass would try them now. Cost: O(jobs_max) records, more if jobs have
// several.
std::vector<JobId> Engine::head_of_queue(std::size_t jobs_max) const {
  std::vector<JobId> ids;
  if (works_priorities_out()) return ids;
  std::set<JobId> seen;  // a job has a record for each of its partitions
  admission_.queue().walk([&](const QueueRecord& record) {
    if (ids.size() >= jobs_max) return false;
    if (seen.insert(record.job).second) ids.push_back(record.job);
    return true;
  });
  return ids;
}

// `now` may be later than the last event: times and turns are projected to it, everything else is
// as of the last event.
std::optional<JobView> Engine::view(JobId id, base::Instant now) {
  turns_->project();
  const Job* job = books_.find(id);
  if (job == nullptr) return std::nullopt;
  JobView view;
  view.facts = job;
  view.state = job->state;
  view.reason = job->reason;
  view.completing = job->completing();
  view.ready = job->ready;
  if (job->ending) view.ending = job->ending->verdict;
  view.priority = job->held.by_someone() ? Priority{0} : job->priority;
  view.allocation = job->allocated() ? &job->allocation : nullptr;
  view.eligible_time = job->eligible_time;
  view.start_time = job->start_time;
  if (job->pending() && job->plan) {
    view.expected_start = job->plan->start;
    view.planned_nodes = job->plan->nodes;
  }
  if (job->start_time) {
    view.preempt_eligible_time = *job->start_time;
    // Users see the start and the exempt time together (R7.43).
    if (job->allocated()) {
      *view.preempt_eligible_time += preempt::exempt_time(cluster_, *job);
    }
  }
  if (job->allocated()) view.time_limit = limits_.whole_time(*job);
  view.run_time = turns_->run_time(*job, now);
  view.suspend_time = turns_->suspend_time(*job, now);
  if (const auto turn = turns_->turn_at(*job, now)) {
    view.state = turn->runs ? JobState::kRunning : JobState::kSuspended;
    view.reason = turn->why;
  }
  return view;
}

// Timers of waiting jobs first (begin times, requeue delays, deadlines, delays of dependencies),
// then grace times that are over.
void Engine::fire_timers() {
  admission_.fire_timers(now_);
  dependencies_.fire_timers();
  while (!grace_timers_.empty() && grace_timers_.begin()->first <= now_) {
    const JobId id = grace_timers_.begin()->second;
    grace_timers_.erase(grace_timers_.begin());
    Job* job = books_.find(id);
    // The timer is not taken back when the job ends sooner or starts over, so it is checked whether
    // it still means this ending.
    if (job != nullptr && job->ending && !job->ending->killed && job->ending->grace_end <= now_) {
      kill(*job);
    }
  }
}

// Empty for a job that does not wait, and under priority/basic, where a priority has no factors.
std::vector<PriorityView> Engine::priorities_of(JobId id, base::Instant now) {
  std::vector<PriorityView> all;
  const Job* job = books_.find(id);
  if (job == nullptr || !job->pending() || !priorities_.is_multifactor()) return all;
  for (const PartitionIndex partition : partitions_of(cluster_, *job->request)) {
    const PriorityFactors factors = priorities_.factors(*job, partition, now);
    // A priority that was given by hand replaces the sum; its factors are shown all the same.
    const Priority priority = job->request->priority ? job->priority
                                                     : weighted_sum(cluster_.parameters().priority,
                                                                    factors, job->request->nice);
    all.push_back({partition, factors, priority});
  }
  return all;
}

}  // namespace sched
