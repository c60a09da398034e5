// Turns: which of the jobs that share nodes runs, and for how long each of them has run. It is
// the one face of gang scheduling (chapter 6) towards the engine. Two implementations:
//
//   OwnTurns   production and simulations: slices lie on a grid of the clock, and what will run
//              when is worked out ahead, so that it can be published as timetables.
//   ToldTurns  recordings of Slurm (replay/): a slice ends when the caller says so.
//
// Both write Job::clock and Job::turn, and tell JobBooks when a job stops or
// goes on. Time is the `now` of the last go_to().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/plan.h"

namespace sched::gang {

// Calls to the gang's owner. May be called within any function of Turns that is not const.
class TurnEvents {
 public:
  virtual ~TurnEvents() = default;
  // A job of a higher tier needs the units of this one, whose preempt mode is CANCEL or REQUEUE.
  virtual void must_end(Job& victim, std::optional<JobId> preemptor) = 0;
  // The job may run at other times than those that were reported before.
  virtual void times_changed(Job& job) = 0;
  // The job runs from now on: the gang resumed it, or let it go.
  virtual void resumed(Job& job) = 0;
};

class Turns {
 public:
  virtual ~Turns() = default;

  // --- time ---
  // REQUIRES: now is not before the last one. `cluster_changes`: nodes or configuration are about
  // to change. Such a change decides which jobs run, so everything is worked out before it.
  virtual void go_to(base::Instant now, bool cluster_changes) = 0;
  // Does what is due.
  virtual void wake() = 0;
  // Stops and resumes all jobs whose turn ended or began since this was last called (a pass depends
  // on which nodes have running jobs, R4.4). Cost: O(components), once in a slice.
  virtual void play() = 0;
  // Returns when something is due; nullopt = nothing but an event changes anything.
  virtual std::optional<base::Instant> next_due() = 0;

  // --- jobs ---
  // The job has got nodes, and pods there that an earlier start did not have.
  virtual void begin(const Job& job) = 0;
  // The job is ready, or its user resumed it: it takes part from now on (6.9).
  virtual void start(Job& job) = 0;
  // Removes the job, which is about to leave its nodes or is being suspended by its user (6.8), if
  // it takes part.
  virtual void leave(Job& job) = 0;
  // Takes the job's run time up to now over into its clock.
  virtual void charge(Job& job) = 0;
  // Sets what the job's clock counts from now on, outside the gang.
  virtual void set_phase(Job& job, JobClock::Phase phase) = 0;
  // The timetables of its nodes may have changed.
  virtual void mark_nodes(const Job& job) = 0;

  // --- configuration ---
  virtual void configure() = 0;
  // Rebuilds everything, in the order of the old lists (6.10). Jobs of a removed partition, and all
  // jobs when the gang is off, go on without it.
  virtual void rebuild() = 0;
  // A new leader: lists and rotation as they were published (Scheduler::restore_from_published).
  // REQUIRES: the jobs are in the books, with their clocks as of now.
  virtual void restore(const std::vector<NodePlan>& published) = 0;

  // --- questions; each works out what it needs to know of the time to come ---
  // Works out what is left to do after events. REQUIRED before a question about a time to come.
  virtual void project() = 0;
  struct Turn {
    bool runs;
    Reason why;  // if it does not run
  };
  // Returns the turn of a job that takes part; nullopt if its state says it.
  virtual std::optional<Turn> turn_at(const Job& job, base::Instant t) = 0;
  virtual base::Duration run_time(const Job& job, base::Instant t) = 0;
  virtual base::Duration suspend_time(const Job& job, base::Instant t) = 0;
  // Returns when the job will have run for `work` in all, if that is by `until` and nothing happens
  // before; otherwise an instant after `until` before which it cannot be.
  virtual base::Instant when_has_run(const Job& job, base::Duration work, base::Instant until) = 0;
  // Returns when the job is expected to have run for `limit` in all: exact by `until` as far as its
  // rotation is known; with told turns, as if it ran from its last turn on.
  virtual base::Instant expected_end(const Job& job, base::Duration limit, base::Instant until) = 0;
  // Returns an instant before which the job cannot run for `more`; exact if that is less than a
  // slice away. nullopt if it never runs.
  virtual std::optional<base::Instant> earliest(const Job& job, base::Duration more) = 0;

  // --- what is published ---
  virtual std::vector<NodePlan> take_plans(base::Instant now) = 0;
  // As they were taken last, of the nodes with entries.
  virtual std::vector<NodePlan> published() const = 0;
  virtual std::vector<JobRun> take_runs() = 0;
  virtual std::vector<JobRun> open_runs() = 0;

  // Empty, or which invariant is broken (6.13); for tests.
  virtual std::string check_invariants() = 0;
};

inline bool is_on(const Cluster& cluster) {
  return cluster.parameters().gang;
}
// Jobs of a removed partition run on outside the gang. REQUIRES: the job is allocated.
inline bool takes_turns(const Cluster& cluster, const Job& job) {
  return is_on(cluster) && cluster.exists(*job.partition);
}

}  // namespace sched::gang
