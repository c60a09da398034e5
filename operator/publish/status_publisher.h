// StatusPublisher: when statuses are written. Commit points and base states at once, in the order
// that CommitGate asks for; what only informs as far as its budget goes, each job once a minute,
// each partition, QOS and the like once in 5 s.
//
// While the API server is slow there is not room for all of them. Then commit points go first,
// since timetables and pods wait for them; base states have a quarter of the room, and what others
// leave. Each job's turn comes in the order in which it was marked, and what is written is what is
// true then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/counters.h"
#include "operator/policy/policy_book.h"
#include "operator/publish/commit_gate.h"
#include "operator/publish/inform_budget.h"
#include "operator/publish/mirror.h"
#include "operator/publish/task_ends.h"
#include "operator/publish/waiting_line.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Cost: the jobs that were marked or answered, those for which there
// is room, and all policies.
class StatusPublisher {
 public:
  struct Parts {
    JobBook& jobs;
    PolicyBook& policy;
    const CommitGate& gate;
    InformBudget& budget;
    TaskEnds& ends;
  };
  explicit StatusPublisher(const Parts& parts)
      : jobs_{parts.jobs},
        policy_{parts.policy},
        gate_{parts.gate},
        budget_{parts.budget},
        ends_{parts.ends} {}

  // Returns the writes that go out at once: policies, and of the jobs no more than there is `room`
  // for. `term`: of this leader.
  std::vector<Effect> due(base::Instant now, std::int64_t term, std::size_t room);
  // Base states for which there is room after everything else.
  std::vector<Effect> due_rest(base::Instant now, std::int64_t term, std::size_t room);
  // Return the writes that only inform: policies, then jobs, the head of the queue first.
  std::vector<Effect> due_informing_policies(base::Instant now);
  std::vector<Effect> due_informing_jobs(base::Instant now, std::int64_t term);
  // Has what is wanted of the job written after the commit (a claim, or its readiness) of the one
  // for which it ends; nullopt: it need not wait. With a throttle, what starts in its place waits,
  // too.
  void write_after(JobRecord& job, std::optional<sched::JobId> preemptor);
  // Nothing more is written of the job before the end of the other one is stored, or its number, as
  // far as the terms of the job ask for that.
  void write_after_end(JobRecord& job, sched::JobId other);
  // Returns the tasks that the write of the array's status was about that has been answered, by
  // key, with what it said of each.
  std::map<std::string, kube::JobStatus> take_in_flight(JobRecord& array, bool is_stored);
  // Call when an answer came for this job's status: what it has to say by now is looked at.
  void look_again(const std::string& job_uid) { jobs_to_write_.insert(job_uid); }
  base::Instant next_due(base::Instant now) const;
  // Returns the status of a job that has waited longest to be stored, and for what. Cost: those
  // that wait.
  OldestWrite oldest(base::Instant now);

 private:
  // For a task, the status of its array is written, with the changes of other tasks.
  PatchStatus<kube::Job> write(JobRecord& job, base::Instant now, std::int64_t term);
  void gather_tasks(JobRecord& array, base::Instant now);
  void queue_informing(JobRecord& job, base::Instant now);
  WaitingLine& line_of(const JobRecord& job);
  base::Instant rests_until(const JobRecord& job) const;
  base::Instant informs_from(const JobRecord& job) const;
  void end_rests(base::Instant now);
  // Marks that came after due() was called count, too.
  void take_marked();
  // Puts each status that must be written at once, and may be, into one of the lines.
  void form_lines(base::Instant now);
  // Not in its back-off, and not after another job's commit point that is not stored yet.
  bool may_write_now(JobRecord& job, base::Instant now);
  bool may_say_now(JobRecord& job, base::Instant now);
  WriteWaitsFor awaited_by(JobRecord& job, base::Instant now);
  bool is_told_of_ends(JobRecord& job);
  // Returns true if the claim, or the readiness, of the job is stored, or it is gone.
  bool is_committed(sched::JobId preemptor);
  // Returns true if what ends, or starts, because of the preemptor need not wait for it.
  bool may_say_before(sched::JobId preemptor, const JobRecord& job);
  // Returns true if what is to be written of `job` waits, directly or by way of others, for what is
  // to be written of `awaited`. Cost: what can be reached.
  bool waits_for(const JobRecord& job, const JobRecord& awaited);
  // From the line, until there are `most` effects.
  void write_from(WaitingLine& line, std::size_t most, base::Instant now, std::int64_t term,
                  std::vector<Effect>& effects);

  JobBook& jobs_;
  PolicyBook& policy_;
  const CommitGate& gate_;
  InformBudget& budget_;
  TaskEnds& ends_;
  std::set<std::string> jobs_to_write_;  // UIDs; of those that may need to be written at once
  WaitingLine commits_, states_;         // UIDs; of those that have to be, for want of room
  // By UID: since when it has to be written at once; some are stored by now (oldest).
  std::map<std::string, base::Instant> since_;
};

}  // namespace control
