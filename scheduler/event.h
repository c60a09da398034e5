// The events that the scheduler gets. Each is given to Scheduler::step together with its instant;
// instants never go back. Events about a job that the scheduler does not know (or has forgotten)
// are ignored.
//
// Arrays (13.4): a user's event with the id of an array is about all of its tasks, those that wait
// as the array and those that are jobs of their own; one with the id of a task is about that task,
// which becomes a job of its own for it. The outcomes of decisions come with the ids that the
// decisions named.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/model/config.h"
#include "scheduler/model/job.h"
#include "scheduler/model/node.h"

namespace sched {

// --- the administrator ---

// The accepted configuration as a whole; the scheduler works out what changed (6.10).
// REQUIRES: legal (scheduler/model/legality.h).
struct Configure {
  std::shared_ptr<const Configuration> configuration;
};
// A node is new, or something of it changed.
struct NodeUpdate {
  NodeSpec node;
};
// The node is gone for good. Events about its jobs came before.
struct NodeRemove {
  std::string name;
};

// --- the user ---

// The caller's knowledge of a job that a dependency names and that the scheduler does not know: how
// it has ended, and when it started last; or (kPending) that it waits to be submitted. A job that
// the caller does not know either is not waited for (13.1).
struct KnownJob {
  JobId job;
  JobState state = JobState::kPending;
  std::optional<base::Instant> started{};
};
struct Submit {
  JobRequest request;
  std::vector<KnownJob> known{};
};
// Terms of a single task of an array, which replace those in the request of the array.
struct TaskTerms {
  std::optional<base::Duration> time_limit{};
  std::optional<Priority> priority{};
  std::optional<std::int32_t> nice{};

  void apply_to(JobRequest& request) const {
    if (time_limit) request.time_limit = time_limit;
    if (priority) request.priority = priority;
    if (nice) request.nice = *nice;
  }
  friend bool operator==(const TaskTerms&, const TaskTerms&) = default;
};
// The whole new request. While the job is pending everything may differ; while it is allocated only
// time_limit, priority and nice are looked at, and `hold` for when it waits again. `known`: of a
// dependency that differs. `tasks`: of an array, for those that are jobs of their own.
struct Update {
  JobRequest request;
  std::vector<KnownJob> known{};
  std::map<int, TaskTerms> tasks{};
};
struct Hold {
  JobId job;
  bool by_admin = false;
};
// Ends the holds of its user, of administrators and of the system, and no suspend.
struct Release {
  JobId job;
};
struct UserSuspend {
  JobId job;
};  // T10, T11; of a pending job: a hold of its own
struct UserResume {
  JobId job;
};
// Also ends a grace time, and takes back the requeue of a job on its way out.
struct Cancel {
  JobId job;
};
// scontrol requeue of an allocated job (13.5).
struct Requeue {
  JobId job;
};
// The record is to be forgotten (its object was deleted, or it ended before it could be submitted).
// Jobs that wait for it take it for canceled. REQUIRES: no pods of it are left.
struct Forget {
  JobId job;
  bool returns = false;  // it may be submitted again: they go on waiting
};

// --- what became of our decisions ---

// All pods of the job run and have settled (architecture.md 2): the gang start 6.9 happens now.
struct JobReady {
  JobId job;
};
// The job ran longer than its timetable says, by `more`, since a node did not slice (kill switch,
// failed open): that counts as run time, not as suspended. It is bounded by the time suspended. For
// a job that is not ready: what its containers ran.
struct JobRan {
  JobId job;
  base::Duration more{};
};
// The job's processes ended by themselves (all, or one failed and the rest is being torn down), or
// its node failed (verdict kNodeFail: requeued when it may be). The gang place stays until JobGone
// (R2.2).
struct JobEnding {
  JobId job;
  JobState verdict;
  int exit_code = 0;
};
// Nothing of the job is left on these nodes, while it still ends on others: they take new jobs as
// soon as its cores are free (R2.1). Its gang place stays until JobGone (R2.2). Nodes that were
// reported before or are not the job's, and a job without a decided end, change nothing.
struct NodesClean {
  JobId job;
  std::vector<std::string> nodes;
};
// All pods of the job are gone and its nodes are clean: T6. If the job ended by itself without a
// JobEnding before, `verdict` says how.
struct JobGone {
  JobId job;
  JobState verdict = JobState::kCompleted;
  int exit_code = 0;
};
// Nothing of the start came to life: it is undone, same place in the queue, no restart counted. If
// its end was decided meanwhile, the job is gone.
struct StartRefused {
  JobId job;
  // It is not tried on these nodes for avoid_for, nor on those that refused it while that still
  // holds.
  std::vector<std::string> avoid_nodes;
  base::Duration avoid_for{0};
  bool hold = false;    // requeue + system hold (LaunchFailedRequeuedHeld)
  std::string message;  // shown to the user
};

// --- time ---

// Do whatever is due at this instant: slices, passes, time limits, begin times, grace ends, joins
// at the end of the lead.
struct Wake {};
// REQUIRES: a replay (replay/replay.h), which makes passes and ends slices only then.
struct SliceEnd {};  // one gang tick of all partitions (6.7)
struct Pass {
  bool main = true;
  bool backfill = false;
};
struct TimeLimitReached {
  JobId job;
};  // the periodic check found it

using Event =
    std::variant<Configure, NodeUpdate, NodeRemove, Submit, Update, Hold, Release, UserSuspend,
                 UserResume, Cancel, Requeue, Forget, JobReady, JobRan, JobEnding, NodesClean,
                 JobGone, StartRefused, Wake, SliceEnd, Pass, TimeLimitReached>;

}  // namespace sched
