// LoopParts: the parts of the control loop, each of which owns what it knows. They have the same
// few verbs, and LoopParts asks each for those that it has:
//
// * observe_job(job) or observe_job(job, now): something about a job has changed;
// * drop_job(uid): the job has no record left; it may have ended;
// * forget_job(uid): its object is gone, and its pods;
// * next_due() or next_due(now): when to look again without a change, kNever if at no time.
//
// In which order parts are asked for writes (`due`) is what the loop is about: ControlLoop::Turns.
// A part that has `due` and no turn there does not compile.
//
// A new part is a member, its initialization, and its name in each(): the compiler counts the
// names.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "base/time.h"
#include "kube/clock.h"
#include "operator/gated/gated_pods.h"
#include "operator/jobs/decisions.h"
#include "operator/jobs/forecasts.h"
#include "operator/jobs/gang_runner.h"
#include "operator/jobs/job_book.h"
#include "operator/jobs/job_counts.h"
#include "operator/jobs/job_numbers.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/pod_index.h"
#include "operator/jobs/pod_trials.h"
#include "operator/jobs/pod_writes.h"
#include "operator/jobs/queue_priorities.h"
#include "operator/jobs/run_times.h"
#include "operator/jobs/suspension_notes.h"
#include "operator/jobs/template_book.h"
#include "operator/jobs/time_to_live.h"
#include "operator/jobs/unseen_jobs.h"
#include "operator/jobs/wishes.h"
#include "operator/loop/counters.h"
#include "operator/loop/inbox.h"
#include "operator/loop/report.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/managed/managed_jobs.h"
#include "operator/nodes/agent_pods.h"
#include "operator/nodes/late_turns.h"
#include "operator/nodes/node_book.h"
#include "operator/nodes/node_taints.h"
#include "operator/nodes/observed_lag.h"
#include "operator/nodes/orphan_pods.h"
#include "operator/nodes/unsliced_time.h"
#include "operator/policy/policy_book.h"
#include "operator/publish/commit_gate.h"
#include "operator/publish/inform_budget.h"
#include "operator/publish/status_publisher.h"
#include "operator/publish/timetable_publisher.h"
#include "operator/publish/usage_keeper.h"
#include "operator/write/writer.h"

namespace control {

// Holds what the parts and the loop share.
class LoopBasis {
 protected:
  LoopBasis(const kube::Clock& clock, Inbox& inbox, Writer& writer, LoopHooks hooks)
      : clock_{clock}, inbox_{inbox}, report_{std::move(hooks)}, writer_{writer, counters_} {}

  friend class LoopParts;
  const kube::Clock& clock_;
  Inbox& inbox_;
  const Report report_;
  LoopCounters counters_;
  JobTotals totals_;
  CountedWriter writer_;
  base::Instant now_{};  // of the present step
  bool ends_by_time_ = true;
};

class LoopParts {
 protected:
  LoopParts(LoopBasis& basis, TemplateBook& templates);

  void observe_job(const JobRecord& job, base::Instant now) {
    each([&](auto& part) {
      if constexpr (requires { part.observe_job(job, now); }) {
        part.observe_job(job, now);
      } else if constexpr (requires { part.observe_job(job); }) {
        part.observe_job(job);
      }
    });
  }
  void drop_job(const std::string& uid) {
    each([&](auto& part) {
      if constexpr (requires { part.drop_job(uid); }) part.drop_job(uid);
    });
  }
  void forget_job(const std::string& uid) {
    each([&](auto& part) {
      if constexpr (requires { part.forget_job(uid); }) part.forget_job(uid);
    });
  }
  base::Instant next_due(base::Instant now) {
    base::Instant first = base::kNever;
    each([&](auto& part) {
      if constexpr (requires { part.next_due(now); }) {
        first = std::min(first, part.next_due(now));
      } else if constexpr (requires { part.next_due(); }) {
        first = std::min(first, part.next_due());
      } else {
        using Part = std::remove_cvref_t<decltype(part)>;
        static_assert(
            !requires { &Part::next_due; }, "next_due() or next_due(now)");
      }
    });
    return first;
  }

  // Calls visit(part) for each.
  template <typename Visit>
  void each(Visit visit) {
    auto& [policy, agents, nodes, pods, jobs, counts, scheduler, gate, timetables, usage, budget,
           recorded, task_ends, statuses, parts, numbers, trials, wishes, pod_writes, gangs,
           decisions, run_times, queue_priorities, time_to_live, unseen_jobs, forecasts, notes,
           managed, gated, taints, orphans, unsliced, late, lag] = *this;
    const auto visit_all = [&](auto&... all) { (visit(all), ...); };
    visit_all(policy, agents, nodes, pods, jobs, counts, scheduler, gate, timetables, usage, budget,
              recorded, task_ends, statuses, parts, numbers, trials, wishes, pod_writes, gangs,
              decisions, run_times, queue_priorities, time_to_live, unseen_jobs, forecasts, notes,
              managed, gated, taints, orphans, unsliced, late, lag);
  }

  // The known objects.
  PolicyBook policy_;
  AgentPods agents_;
  NodeBook nodes_;
  PodIndex pods_;
  JobBook jobs_;
  JobCounts counts_;
  SchedulerDriver scheduler_;

  // Publishing, and its order.
  const CommitGate gate_;
  TimetablePublisher timetables_;
  UsageKeeper usage_;
  InformBudget budget_;
  Recorded recorded_;
  TaskEnds task_ends_{recorded_};
  StatusPublisher statuses_{{jobs_, policy_, gate_, budget_, task_ends_}};

  // Actions for one job.
  const JobParts parts_;
  JobNumbers numbers_;
  PodTrials trials_;
  Wishes wishes_;
  PodWrites pod_writes_;
  GangRunner gangs_;
  Decisions decisions_;
  RunTimes run_times_;
  QueuePriorities queue_priorities_;
  TimeToLive time_to_live_{recorded_};
  UnseenJobs unseen_jobs_;
  Forecasts forecasts_{parts_, scheduler_, numbers_, time_to_live_};
  SuspensionNotes notes_;
  ManagedJobs managed_;
  GatedPods gated_;

  // Objects that converge beside the jobs.
  NodeTaints taints_;
  OrphanPods orphans_;
  UnslicedTime unsliced_;
  LateTurns late_;
  ObservedLag lag_;
};

}  // namespace control
