// The scheduler core: a deterministic state machine without I/O, threads, clock or randomness.
// Events go in with their instants, decisions come out as data. It decides as Slurm does
// (slurm-semantics.md; rules are cited where they are implemented).
//
// Threads: none; one caller at a time.
//
// Cost: an event costs what it changes, not what exists; the figures of `make bench` say how much.
//   step         of a job: O(its nodes + its partitions × log queue), and its component of the
//   gang.
//                NodeUpdate: what depends on that node, and jobs held as impossible. A new node or
//                other hardware, NodeRemove, Configure: O(everything).
//   Wake, Pass   O(nodes / 64 + what changed) for each record that a pass tries; with jobs stacked
//                O(nodes × partitions), and O(jobs stacked) after one of them has left.
//   questions    job(), when_has_run(): O(1) and its component; names O(log); jobs() O(jobs).
//   plans        O(nodes that may differ × their jobs × slots); runs likewise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/job_facts.h"
#include "scheduler/options.h"
#include "scheduler/plan.h"
#include "scheduler/priority/priority_views.h"
#include "scheduler/priority/usage_state.h"
#include "scheduler/state_copy.h"

namespace sched {

// A caller's view of a job: the facts to store, and values that are worked out for an instant.
struct JobView {
  // Valid until the next step. `state` there is the base state, without turns to come, and
  // `priority` is kept while the job is held.
  const JobFacts* facts = nullptr;
  JobState state = JobState::kPending;
  Reason reason = Reason::kNone;
  bool completing = false;
  bool ready = false;  // JobReady has come
  std::optional<EndingVerdict> ending;
  Priority priority;  // 0 while it is held; what cannot run anywhere keeps its own
  const Allocation* allocation = nullptr;  // valid until the next step
  base::Instant eligible_time{};
  std::optional<base::Instant> start_time;
  // When and on which nodes a pending job that the last pass of the backfill reached is expected to
  // start.
  std::optional<base::Instant> expected_start;
  std::vector<NodeIndex> planned_nodes;
  std::optional<base::Instant> preempt_eligible_time;
  std::optional<base::Duration> time_limit;  // of a job with nodes, OverTimeLimit included
  base::Duration run_time{};                 // as of the instant asked for
  base::Duration suspend_time{};
};

class Engine;

class Scheduler {
 public:
  explicit Scheduler(Options options);
  explicit Scheduler(std::unique_ptr<Engine> engine);  // a replay
  ~Scheduler();
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;

  // REQUIRES: now is not before the last step's.
  void step(base::Instant now, const Event& event);
  // Takes the decisions since the last call, in order.
  std::vector<Decision> take_decisions();

  // Returns when the next Wake is due; nullopt = only an event can change anything. Passes happen
  // in Wakes alone, so that many events cost one pass: after events that may let a job start this
  // is the instant of the last step. Ticks that only rotate are not due: they are played when
  // something else happens.
  std::optional<base::Instant> next_due() const;
  // Sets the least interval of backfill passes, from the next one on, whatever the configured one.
  void rest_at_least(base::Duration rest);

  // Returns the plans of the nodes whose list or run(t) from c on differs from what was taken last
  // (after a restore: from what was published). A node without contention has no entries. REQUIRES:
  // Options::publishes.
  std::vector<NodePlan> take_plans(base::Instant now);

  // --- instead of plans; REQUIRES: not Options::publishes, own timing ---
  // When jobs ran, as far as it was settled since the last call; of each job in the order of time,
  // without overlaps. A job runs in no other time. A job's runs are settled when others of its
  // component come and go, and when it leaves its nodes.
  std::vector<JobRun> take_runs();
  // Returns the runs that are not settled yet, of the jobs on their nodes: when they run from then
  // on if nothing more happens; `to` is kNever.
  std::vector<JobRun> open_runs();
  // Returns when the allocated job will have run for `work`, if that is by `until` and nothing
  // happens before; otherwise an instant after `until` before which it cannot be, whatever happens.
  base::Instant when_has_run(JobId job, base::Duration work, base::Instant until);

  // Returns why the job may not wait for what the request names: it would wait for itself. A
  // Submit or Update of it is refused. Cost: O(the jobs that are waited for, directly or not).
  std::optional<std::string> refused_dependency(const JobRequest& request) const;
  std::optional<JobView> job(JobId id, base::Instant now) const;
  std::vector<JobId> jobs() const;  // in job-table order, finished ones not
  // After the end of a period waiting jobs get new priorities in several steps, of which next_due()
  // says each. Until the last one passes wait, and the queue has no order.
  bool works_priorities_out() const;
  // Returns the jobs that a pass would try first, at most jobs_max; none while
  // works_priorities_out(). Cost: O(their partitions × QOS).
  std::vector<JobId> head_of_queue(std::size_t jobs_max) const;
  const std::string& node_name(NodeIndex node) const;
  const std::string& partition_name(PartitionIndex partition) const;
  std::optional<NodeIndex> find_node(std::string_view name) const;
  std::optional<PartitionIndex> find_partition(std::string_view name) const;
  // Also one that was removed, or that this scheduler has never heard of (it counts as removed):
  // jobs that run in it are restored all the same.
  PartitionIndex known_partition(const std::string& name);

  // --- usage (9.2): what fair share is worked out from; with PriorityType multifactor alone ---
  // All that has to be kept for the next scheduler, which goes on as this one would. It changes
  // when a period ends (usage_as_of) and when a job does.
  UsageState usage() const;
  // Returns when the last period ended.
  base::Instant usage_as_of() const;
  // Takes the jobs charged at the end of a run since the last call, and for how much of it. The
  // caller keeps them beside usage() until the next scheduler would know of their ends. REQUIRES:
  // Options::publishes, and that it is called now and then: the list grows with every end.
  std::vector<JobCharged> take_charged_ends();
  // Goes on with usage as it was saved. `ended`: the jobs that had nodes when the state was saved,
  // or have started since, and have ended. Waiting jobs get their priorities. Cost: O(jobs +
  // associations + ended). REQUIRES: after restore_from_published, or before any job.
  void restore_usage(const UsageState& state, const std::vector<EndedJob>& ended = {});
  // Accounts and users, parents before children; empty if none are configured. Cost: O(them).
  std::vector<ShareView> shares() const;
  // Returns the priority of a pending job in each of its partitions, as it would be worked out now.
  // Empty unless PriorityType is multifactor.
  std::vector<PriorityView> priorities_of(JobId job, base::Instant now) const;

  // Returns the jobs and tasks that the backfill has started, as sdiag counts them.
  std::int64_t backfilled_starts() const;
  // Returns the licenses that jobs hold, by name. A name that once was in use stays, with 0.
  const Licenses& licenses_in_use() const;

  // Returns all that another scheduler needs to go on from `now` on its own, but for the
  // configuration. REQUIRES: as step() does of `now`. Cost: O(jobs + nodes + what is published).
  StateCopy copy(base::Instant now) const;

  // Empty, or which invariant is broken (6.13; shares, memory, all or nothing). Cost:
  // O(everything); for tests.
  std::string check_invariants() const;

  // A new scheduler from what the API server holds. REQUIRES: Configure and all NodeUpdates
  // were stepped, no job was; `jobs` in job-table order (jobs ids); `published`: the newest
  // timetable of every node that has one, its entries without pods of jobs that are not in `jobs`.
  //
  // The lists as of each plan's `as_of` are advanced to now by the rotation rule, and the nodes'
  // orders are merged, ties by job-table order. A ready job in no timetable is FILLER at the end of
  // its list. Published plans stand until now + lead; take_plans() then gives only nodes that have
  // to differ. An allocation that can no longer be booked (for instance, its node is gone) is
  // kept all the same until the caller ends the job.
  // An array is given with the tasks that wait as the array and those that have ended; each of the
  // others is a job of its own in `jobs`, behind it.
  // `known`: of the jobs that open terms name and that are not in `jobs`, how they have ended. One
  // that is in neither is gone, and so is that knowledge: it has neither succeeded nor failed.
  void restore_from_published(base::Instant now, std::vector<JobFacts> jobs,
                              std::vector<NodePlan> published,
                              const std::vector<KnownJob>& known = {});

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace sched
