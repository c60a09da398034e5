// Components: the gang under its own timing. A tracked job runs if no other job is in its way; the
// others live in components, each with its own lists, pending ops and projection. Ticks are played
// lazily: a component is played to now when an event touches it or when the caller asks for all.
//
// Rows and lists exist per component only: a job without conflicts is FILLER and runs; when a
// conflict arises it enters the component's list with that row. (With told timing one GangLists
// holds all jobs and a partition is turned as a whole, as in Slurm.)
//
// Two rules hold between events (check_invariants): no node has members of two components, and all
// jobs in conflict with a member are members of its component.
//
// How an event goes through: closure() finds the components and jobs around the job; merge() makes
// them one, played to now; the event changes its lists; split() takes apart what is no longer
// connected; mark_stale() has it projected and reports its members.
//
// Cost: an event costs the component that it touches: its jobs × (pending slots + 64), and if k of
// them were in other components or in none before, its jobs × log k. The rest is only looked at
// when due, and all of it once in each slot in which a caller calls advance().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/timers.h"
#include "scheduler/gang/component.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/jobs/node_usage.h"

namespace sched {
struct NodePlan;
}  // namespace sched

namespace sched::gang {

// Returns the job as the lists need it, not suspended. REQUIRES: it has an allocation.
Newcomer newcomer_of(const Job& job, const Cluster& cluster);

// Returns the nodes on which any of the jobs has an allocation, ascending.
std::vector<NodeIndex> nodes_of(const std::vector<const Job*>& jobs);

class Components {
 public:
  // `publishes`: whether timetables are taken. Otherwise run(t) is projected only as far as it is
  // asked for, and no node becomes dirty.
  Components(const Cluster& cluster, const NodeUsage& usage, JobTable& jobs, bool publishes)
      : cluster_{cluster}, usage_{usage}, jobs_{jobs}, publishes_{publishes} {}

  // Slice length and lead as configured.
  void configure(base::Instant now);
  const Grid& grid() const { return grid_; }

  // The job is ready, or its user resumed it: 6.9. Job::turn.in_gang becomes true.
  void start(Job& job, base::Instant now);
  // The job is gone, or its user suspended it (6.8). REQUIRES: still on its nodes (NodeUsage).
  void leave(Job& job, base::Instant now);
  // A kill that play() reported was turned into an ending of the job.
  void set_dying(Job& job, base::Instant now);
  // 6.10: everything again, in the order of the old lists.
  void rebuild(const std::vector<Job*>& tracked, base::Instant now);
  // Restores a new leader's components as they were published. The jobs are in the job
  // table and in NodeUsage. Invalid plans, and jobs in them that are not tracked, are left
  // out.
  void restore_published(const std::vector<NodePlan>& published, base::Instant now);

  // Time goes on: does what is due by now. advance() also reports in take_touched() the members
  // that have been turned since it was last called: nothing in one slot, O(components) in the next.
  void advance(base::Instant now);
  void advance_due(base::Instant now);
  // Returns when something must be done at an instant of its own: a pending op, a kill by a tick,
  // the end of a projection. Ticks that only rotate are not due. REQUIRES: nothing is stale.
  std::optional<base::Instant> next_due() const;

  // --- working run(t) out ---
  // Where timetables are published run(t) is projected as a whole, by project_stale(); elsewhere
  // (simulations) it is projected as far as one of the three others asks. Cost of each: at most 64
  // ticks for each component that is not known so far, otherwise nothing.

  // Projects what is stale. To be called before time goes on, before the cluster changes, and
  // before anything is read of a time to come.
  void project_stale();
  // Leaves nothing to be projected later: before the cluster changes, since that decides which jobs
  // run.
  void project_all();
  // Before runs_at(job, t).
  void ensure_known_at(const Job& job, base::Instant t) const;
  // Before run_time() and when_has_run() up to `until`. Returns component(job).
  Component* ensure_projected(const Job& job, base::Instant until) const;
  // Before ever_runs(): of all these jobs at once, so that each component is projected once.
  void ensure_seen(const std::vector<const Job*>& jobs) const;

  // --- reading; t not before the last event. Nothing below works anything out ---
  // The component of a job with conflicts, or null.
  const Component* component(const Job& job) const { return job.turn.component; }
  // REQUIRES: ensure_known_at(job, t).
  bool runs_at(const Job& job, base::Instant t) const;
  // Returns true if it runs at some slot to come. REQUIRES: ensure_seen of the job.
  bool ever_runs(const Job& job) const;
  // Returns false if ever_runs() is true whatever its component's projection says.
  bool may_lose_turns(const Job& job) const;
  // Run time of a tracked job in [from, to). REQUIRES: ensure_projected(job, to).
  base::Duration run_time(const Job& job, base::Instant from, base::Instant to) const;
  // Returns when a tracked job has run for `work` since `from`, if that is by `until`; otherwise an
  // instant after `until` before which it cannot be, whatever happens. REQUIRES:
  // ensure_projected(job, until).
  base::Instant when_has_run(const Job& job, base::Instant from, base::Duration work,
                             base::Instant until) const;
  // Whether a job (tracked or not yet) would not run at the same time as a tracked or unready one.
  bool conflicts(const Job& a, const Job& b) const;

  // Returns jobs whose clock, run state or reason may have changed since the last call, each once.
  std::vector<JobId> take_touched();
  std::vector<Action> take_kills() { return std::exchange(kills_, {}); }
  // Returns nodes whose timetable may have changed, and when it is to be published at the latest.
  base::Timers<NodeIndex>& dirty_nodes() { return dirty_nodes_; }
  void mark(const Job& job, base::Instant publish_at);

  // Called with each job of a component before its projection is replaced: run time up to now has
  // to be taken over (Engine).
  using Settle = std::function<void(Job&)>;
  void on_settle(Settle settle) { settle_ = std::move(settle); }

  std::string check_invariants(base::Instant now) const;

 private:
  using Ids = std::set<std::int64_t>;
  // Components and jobs that must become one component: see closure().
  struct Closure {
    Ids components;
    std::vector<Job*> loose;  // tracked jobs in no component yet, in table order
  };
  std::unique_ptr<Component> new_component(base::Instant at) const;
  // --- components.cc ---
  base::Instant join_at(Component& component, base::Instant now, base::Instant& publish_at) const;
  Newcomer newcomer(JobId id) const;
  Lookup lookup() const {
    return [this](JobId id) { return newcomer(id); };
  }
  void settle_clocks(const Component& component);
  void mark_stale(Component& component, base::Instant now, base::Instant publish_at);
  // --- components_conflicts.cc ---
  // Calls visit(other) with each tracked job in conflict with `job`, once per common node, until it
  // returns false. Defined, and used, in that file only.
  template <typename Visit>
  void for_each_rival(const Job& job, const Visit& visit) const;
  bool has_rivals(const Job& job) const;
  std::string check_run(const Component& component, base::Instant t) const;
  Closure closure(const Job& seed) const;
  // --- components_regroup.cc ---
  Component& merge(const Closure& closure, base::Instant now);
  std::vector<std::vector<JobId>> parts(const Component& component) const;
  void split(std::int64_t id, base::Instant now, base::Instant publish_at);
  Component& insert(std::unique_ptr<Component> component);
  std::unique_ptr<Component> remove(std::int64_t id);
  // --- components_time.cc ---
  std::optional<base::Instant> due_of(const Component& component) const;
  void update_due(Component& component);
  void advance_to(Component& component, base::Instant now);
  void collect_turned(Component& component, base::Instant now);
  void quiet_no_longer_than(const Component& component, base::Instant now);
  // --- components_projection.cc ---
  void project_for(Component& component, const Need& need) const;
  bool may_end_early(const Component& component) const;
  bool ends_early(const Component& component) const;
  void remember(const Component& from, Component& in) const;
  // --- components_restore.cc ---
  void restore_group(const std::set<JobId>& group, std::vector<const NodePlan*> plans,
                     base::Instant now);
  ComponentState assemble(const std::vector<const NodePlan*>& plans, const std::set<JobId>& group,
                          base::Instant at) const;
  bool adopt_cycle(Component& component, const std::vector<const NodePlan*>& plans,
                   const std::set<JobId>& group, base::Instant now) const;
  bool keep_plan_until(Component& component, const std::vector<const NodePlan*>& plans,
                       base::Instant now, base::Instant until) const;
  bool gang_kills(const Job& job) const;

  const Cluster& cluster_;
  const NodeUsage& usage_;
  JobTable& jobs_;
  const bool publishes_;
  Grid grid_;
  std::map<std::int64_t, std::unique_ptr<Component>> components_;
  std::int64_t next_id_ = 1;
  base::Timers<std::int64_t> due_;  // due_of() of the components that have one
  Ids stale_;
  // Before this instant no job starts or stops running except in components that are due, so
  // advance() may skip the others.
  base::Instant quiet_until_ = base::Instant::min();
  std::vector<JobId> touched_;
  std::vector<Action> kills_;
  base::Timers<NodeIndex> dirty_nodes_;
  Settle settle_;
};

}  // namespace sched::gang
