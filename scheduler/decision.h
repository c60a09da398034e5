// The scheduler's decisions, as data. The caller carries decisions out in their order; the ordering
// rules stand on the types. Same events, same decisions, on every machine.
//
// Arrays (13.4): an array waits as one job, under its own id. A decision about the id of a task
// (JobId::of_task) is about that task alone, which is a job of its own from then on: it has
// started, or it differs from the rest. Nothing else says so: mostly it is a Start of an id that
// was never named before. A StateChange of an array says that the tasks that waited as the array,
// if any, have ended so; none waits then. The array is over when no task is unfinished besides,
// and if none waited for the end of the last one, a StateChange tells the array's state: kFailed if
// a task has failed, else kCancelled if one was canceled, else kCompleted; `exit_code` is the
// highest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/job.h"

namespace sched {

// The job gets this allocation now. Commit it (Job.status.allocation) before its timetables, and
// those before its pods. The gang start follows with the event JobReady.
struct Start {
  JobId job;
  PartitionIndex partition;
  Allocation allocation;
  // In force for this run, as the backfill may have lowered it (--time-min); nullopt = unlimited.
  std::optional<base::Duration> time_limit{};
  friend bool operator==(const Start&, const Start&) = default;
};

// The gang stopped or resumed the job at this instant, or the job stays stopped for another cause.
// Turns need not be written: timetables say them. All Suspends of a step come before its Resumes.
struct Suspend {
  JobId job;
  Reason cause;  // kTimeslice, kPreempted, kUser
  friend bool operator==(const Suspend&, const Suspend&) = default;
};
struct Resume {
  JobId job;
  friend bool operator==(const Resume&, const Resume&) = default;
};

// The job must end: commit the ending, then delete its pods with a grace period, then tell
// JobGone. An ending that was decided is final, except that a cancel is decided once more: it ends
// a grace time now, and takes a requeue back.
enum class EndingVerdict { kRequeue, kPreempted, kTimeout, kCancelled, kDeadline };
struct End {
  JobId job;
  EndingVerdict verdict;
  base::Instant kill_at;  // SIGTERM now, SIGKILL from here on at the latest
  std::optional<JobId> preemptor;
  friend bool operator==(const End&, const End&) = default;
};

// The user changed the time limit of a job with an allocation: this one is in force now, also if
// the backfill had lowered the one before. nullopt = unlimited.
struct LimitChanged {
  JobId job;
  std::optional<base::Duration> time_limit{};
  friend bool operator==(const LimitChanged&, const LimitChanged&) = default;
};

// A preemptor that has to wait for its victims holds these nodes until `until` (P14). Commit it
// before the victims' endings. `claim` empty = given up.
struct Claim {
  JobId job;
  std::optional<Allocation> claim;
  base::Instant until{};
  friend bool operator==(const Claim&, const Claim&) = default;
};

// The instant and the nodes until which a refused start is not tried again: nowhere before `at`,
// and not on `nodes` before `nodes_until`. Instants in the past have no effect.
struct Retry {
  base::Instant at{};
  std::vector<NodeIndex> nodes;
  base::Instant nodes_until{};
  friend bool operator==(const Retry&, const Retry&) = default;
};

// The base state changed otherwise: requeued to Pending, or terminal. The counts are as of now.
struct StateChange {
  JobId job;
  JobState state;
  Reason reason;
  int exit_code = 0;
  int restarts = 0;
  int node_failures = 0;                     // JobFacts::node_failures
  std::optional<base::Instant> eligible_at;  // of a requeued job
  std::optional<Retry> retry{};              // of a job that waits again, while it holds
  friend bool operator==(const StateChange&, const StateChange&) = default;
};

// Why a pending or suspended job waits; only when it changed. It informs: writing it may be late.
struct Waits {
  JobId job;
  Reason reason;
  std::string message;  // one sentence with numbers, or empty
  friend bool operator==(const Waits&, const Waits&) = default;
};

// When and on which nodes a pending job is expected to start; only when that changed. It informs.
// `start` empty = it is not known (or no longer). A Start or StateChange ends it silently.
struct Planned {
  JobId job;
  std::optional<base::Instant> start;
  std::vector<NodeIndex> nodes;
  friend bool operator==(const Planned&, const Planned&) = default;
};

// The state of each term of a waiting job's dependency, in the order of its request: at its
// submission and whenever that changed. Store it, since the object of the other job may go.
struct TermsChanged {
  JobId job;
  std::vector<TermState> terms;
  friend bool operator==(const TermsChanged&, const TermsChanged&) = default;
};

// The new job is turned away: the scheduler does not know it, and it may be submitted again.
struct SubmitRefused {
  JobId job;
  std::string message;
  friend bool operator==(const SubmitRefused&, const SubmitRefused&) = default;
};

// A user's command cannot be obeyed; nothing changed, and the job goes on.
struct CommandRefused {
  JobId job;
  std::string message;
  friend bool operator==(const CommandRefused&, const CommandRefused&) = default;
};

using Decision = std::variant<Start, Suspend, Resume, End, LimitChanged, Claim, StateChange, Waits,
                              Planned, TermsChanged, SubmitRefused, CommandRefused>;

}  // namespace sched
