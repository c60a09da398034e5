// JobFacts: what the API server holds of a job. It is a part of the scheduler's record (struct
// Job), JobView shows it, the caller stores it (the operator in the Job's status), and a new
// scheduler takes it as it is (Scheduler::restore_from_published). A new scheduler works out
// everything else again, or does not know it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/decision.h"
#include "scheduler/model/holds.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/job.h"

namespace sched {

// An ending that was decided. Only a cancel turns a requeue or a preemption, which may have a grace
// time, into an ending without one; everything else is final. State and allocation stay until
// JobGone (T5, T6).
struct Ending {
  JobState final_state = JobState::kCompleted;  // kPending = requeue
  std::optional<EndingVerdict> verdict;         // nothing = the job ended by itself
  base::Instant grace_end{};                    // until then it may go on (7.8)
  std::optional<JobId> preemptor;
  int exit_code = 0;
  // The grace is over, or there was none: cores are released (R2.1). Follows from `grace_end` when
  // a job is restored.
  bool killed = false;
  bool node_failed = false;  // it is requeued because a node failed, which counts (13.5)
  friend bool operator==(const Ending&, const Ending&) = default;
};

// Returns the state in which a job ends by this decision.
constexpr JobState final_state_of(EndingVerdict verdict) {
  switch (verdict) {
    case EndingVerdict::kRequeue:
      return JobState::kPending;
    case EndingVerdict::kPreempted:
      return JobState::kPreempted;
    case EndingVerdict::kTimeout:
      return JobState::kTimeout;
    case EndingVerdict::kCancelled:
      return JobState::kCancelled;
    case EndingVerdict::kDeadline:
      return JobState::kDeadline;
  }
  return JobState::kCancelled;
}

// Run and suspended time (R13.20, R13.22), as of `as_of`; the phase since then is added on reading.
// A job that is restored gets its phase again.
struct JobClock {
  enum class Phase { kIdle, kRunning, kSuspended };
  Phase phase = Phase::kIdle;
  base::Duration run{};
  base::Duration suspended{};
  base::Instant as_of{};

  void to(Phase next, base::Instant now) {
    if (phase == Phase::kRunning) run += now - as_of;
    if (phase == Phase::kSuspended) suspended += now - as_of;
    phase = next;
    as_of = now;
  }
  base::Duration run_at(base::Instant now) const {
    return phase == Phase::kRunning ? run + (now - as_of) : run;
  }
  base::Duration suspended_at(base::Instant now) const {
    return phase == Phase::kSuspended ? suspended + (now - as_of) : suspended;
  }
  friend bool operator==(const JobClock&, const JobClock&) = default;
};

// The comments in brackets name the writers within the scheduler; all others read. Fields that a
// turn touches come first and close together: if many jobs change at one instant, most time is
// spent on the cache lines of these jobs.
struct JobFacts {
  // --- [JobBooks] the base state, and the nodes while `partition` is set ---
  alignas(64) JobId id;
  JobState state = JobState::kPending;
  bool ready = false;           // JobReady has come
  bool user_suspended = false;  // prio 0 in Slurm's terms (T10, T11)
  std::optional<PartitionIndex> partition;
  JobClock clock;  // [gang::Turns; the engine at a start, a requeue and JobRan]
  Allocation allocation;
  std::optional<Ending> ending;
  base::Instant allocated_at{};
  std::optional<base::Instant> start_time;  // when it became ready, or was so last
  // [engine] In force from the start on, until its user changes the limit; nullopt = unlimited.
  std::optional<base::Duration> time_limit;

  // --- [JobBooks] what its user asks for; never null. Jobs may share it: what changes is a copy
  // ---
  std::shared_ptr<const JobRequest> request;

  // --- [the engine, and MainPass (held)] its place in the queue ---
  Priority priority{};            // as computed or given; `held` counts as 0. 0 = to be computed
  base::Instant eligible_time{};  // [Admission]
  Holds held;                     // that of its request is set again when it is restored
  base::Instant submit_time{};    // reset by a requeue (T7)
  std::optional<base::Instant> not_before;  // requeue delay
  Retry retry;                              // of a start that was refused: it costs no age
  int restarts = 0;
  int node_failures = 0;  // requeues of them since it was last held for that (13.5)
  int exit_code = 0;      // of its last start
  bool has_begun = false;  // [JobBooks] it has started, if only for a start that was refused
  // [Dependencies] What became of each term of the request's dependency.
  std::vector<TermState> terms;
  // [JobBooks] Of an array as a whole; it waits as long as tasks wait in here.
  std::optional<ArrayFacts> array;

  // --- [JobBooks] a claim of a preemptor that waits for its victims (P14), or of a job that its
  // user has resumed and that waits for room on its nodes (T11; not stored) ---
  std::optional<Allocation> claim;
  base::Instant claim_until{};

  // Returns those of a job that is submitted with this request.
  static JobFacts of(JobRequest request) {
    JobFacts facts;
    facts.id = request.id;
    facts.submit_time = request.submit_time;
    if (request.array) facts.array.emplace().waiting = request.array->tasks;
    facts.request = std::make_shared<const JobRequest>(std::move(request));
    return facts;
  }

  // Requests are equal only if they are the same object.
  friend bool operator==(const JobFacts&, const JobFacts&) = default;

  bool pending() const { return state == JobState::kPending; }
  bool allocated() const { return partition.has_value(); }
  bool running() const { return state == JobState::kRunning; }
  bool suspended() const { return state == JobState::kSuspended; }
  // Allocated and its processes are on their way out: its nodes take no new jobs, but where nothing
  // of it is left (R2.1).
  bool completing() const { return allocated() && ending && ending->killed; }
  // Changes what its user asks for. REQUIRES: the caller sees to what points at the request.
  template <typename Change>
  void change_request(Change change) {
    auto changed = std::make_shared<JobRequest>(*request);
    change(*changed);
    request = std::move(changed);
  }
};

}  // namespace sched
