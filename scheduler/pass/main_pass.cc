#include "scheduler/pass/main_pass.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/limits/time_limits.h"

namespace sched {

// The memory of one pass.
struct MainPass::State {
  State(const NodeGroups& groups, const Cluster& cluster, const JobBooks& books,
        const JobQueue& queue, base::Instant at)
      : now{at},
        available{cluster, groups.up(), books, at},
        failed(static_cast<std::size_t>(cluster.partition_slots()), false),
        tested_in(failed.size(), 0),
        failed_by(failed.size()),
        left{queue.counts()},
        open{static_cast<int>(queue.size())} {
    left.resize(failed.size(), 0);
  }

  // The claimant will be reached, whatever fails before it.
  void expect_claimant(const Job& job) {
    claimants.insert(job.id);
    claimants_left += static_cast<int>(job.queued.in.size());
  }
  // Counts down what lies ahead of the walk. When `open` and `claimants_left` are 0 no record
  // behind can start a job, and the walk ends: in a full cluster that is after a few records.
  void visit(const QueueRecord& record) {
    --left[record.partition.index()];
    if (claimants.contains(record.job)) --claimants_left;
    if (!failed[record.partition.index()]) --open;
    if (record.record->queued.in.size() > 1) ++visits[record.job];
  }
  // The records of the partition that are still ahead are no longer open.
  void fail(PartitionIndex partition, JobId by) {
    if (!failed[partition.index()]) open -= left[partition.index()];
    failed[partition.index()] = true;
    failed_by[partition.index()] = by;
  }
  bool has_failed_a_partition(JobId job) const {
    return std::find(failed_by.begin(), failed_by.end(), job) != failed_by.end();
  }
  // The pass reached all records of the job and tried at least one of them.
  bool has_its_reason(const Job& job) const {
    if (!tried.contains(job.id)) return false;
    const auto found = visits.find(job.id);
    return found == visits.end() || found->second == static_cast<int>(job.queued.in.size());
  }

  const base::Instant now;
  Availability available;
  std::vector<bool> failed;                     // by PartitionIndex
  std::vector<int> tested_in;                   // likewise
  std::vector<std::optional<JobId>> failed_by;  // likewise
  bool stopped = false;                         // by what a PassActions does not allow
  bool is_over = false;                         // jobs behind are the backfill's to start
  bool blocker_started = false;  // a job that failed a partition started in another one
  int tested = 0;
  int started = 0;
  std::vector<int> left;        // records not visited yet, by PartitionIndex
  int open;                     // those of them in partitions that have not failed
  std::set<JobId> claimants;    // jobs that had a claim before the pass
  int claimants_left = 0;       // records of claimants not visited yet
  std::set<JobId> tried;        // and not started
  std::map<JobId, int> visits;  // of jobs with several records
  std::vector<Job*> done;       // their records go when the walk is over
  std::set<JobId> preempting;   // their victims must end
  base::Instant valid_until = base::kNever;
};

// Walks the queue. The numbers are the steps of 3.4:
//
// 2. Clear the partitions' marks and take the available nodes, with the claims on them.
// 5. Stop when the depth or the number of starts is reached, or no partition is left that takes
//    jobs and no job with a claim. Jobs behind that point wait for priority (7).
bool MainPass::run(base::Instant now, std::optional<int> depth) {
  books_.expire_claims(now);
  const std::uint64_t version = books_.version();
  // Without a change since a pass that went to the end of the queue, this one would decide the
  // same.
  if (passed_version_ == version && now < passed_until_ && !depth) return false;
  State pass{groups_, cluster_, books_, admission_.queue(), now};
  for (const JobId id : books_.claimants()) pass.expect_claimant(*books_.find(id));
  bool complete = true;
  books_.begin_pass();
  admission_.queue().walk([&](const QueueRecord& record) {
    pass.visit(record);
    // 13.4: the tasks of an array one after the other, as long as they start.
    for (int before = pass.started - 1; before < pass.started && !pass.stopped && !pass.is_over;) {
      before = pass.started;
      if (is_full(pass, depth)) {
        complete = false;
        return false;
      }
      try_record(pass, record);
      if (!record.record->is_array()) break;
    }
    return !pass.stopped && !pass.is_over && (pass.open > 0 || pass.claimants_left > 0);
  });
  if (pass.stopped) complete = false;
  // A pass that was cut off says nothing about the jobs behind the cut; the next one may start
  // them.
  if (complete) wait_for_priority_behind(pass);
  books_.end_pass();
  // Records leave the queue only now: while it is walked its order must not change.
  for (Job* job : pass.done) {
    if (job->is_array() && !job->held) {
      admission_.task_started(*job, now);
    } else if (job->pending()) {
      admission_.admit(*job, now);
    } else {
      admission_.withdraw(*job);
    }
  }
  // The nodes of a claim that runs out are for others, so a pass must look then.
  for (const JobId id : books_.claimants()) {
    pass.valid_until = std::min(pass.valid_until, books_.find(id)->claim_until);
  }
  passed_until_ = pass.valid_until;
  // If this pass changed something, the version is another one, and the next pass looks again.
  if (complete && books_.version() == version) passed_version_ = version;
  return pass.blocker_started;
}

bool MainPass::is_full(const State& pass, std::optional<int> depth) const {
  const int most = cluster_.parameters().queue.max_job_start;  // 0 = any number
  return (depth && pass.tested >= *depth) || (most && pass.started >= most);
}

// The steps of 3.4 from the third on.
void MainPass::try_record(State& pass, const QueueRecord& record) {
  Job& job = *record.record;
  const PartitionIndex partition = record.partition;
  // 3. It was started through another record, or held, or its victims are on their way out.
  if (!job.pending() || job.held || pass.preempting.contains(job.id)) return;
  // The array has started as many tasks in this pass as may run, or this was its last one.
  if (job.count() == 0 || job.is_throttled()) return note_done(pass, job);
  if (pass.now < job.replay.passed_over_until) {
    pass.valid_until = std::min(pass.valid_until, job.replay.passed_over_until);
    return;
  }
  // Only records that come so far count for the depth (step 5).
  ++pass.tested;
  // 6. The partition's depth is reached.
  const int partition_depth = cluster_.parameters().queue.partition_job_depth;
  if (partition_depth > 0 && pass.tested_in[partition.index()]++ >= partition_depth) {
    return wait_for_priority(pass, job);
  }
  // 7. The partition has failed. The nodes that a job has claimed are kept for it all the same: the
  //    job that failed may wait for just these, for example the victim itself, queued again.
  if (pass.failed[partition.index()] && !job.claim) return wait_for_priority(pass, job);
  // 8. Its deadline has passed.
  if (admission_.end_if_too_late(job, pass.now)) {
    pass.done.push_back(&job);
    return;
  }
  if (auto refusal = needs_backfill(job, partition)) {
    // The partition does not fail: jobs behind it may start there (8.1 o).
    return books_.set_reason(job, refusal->reason, std::move(refusal->message));
  }
  // 8 and 9. Are enough nodes left, and does it fit there?
  const auto length = TimeLimits::limit_of(cluster_, job, partition, pass.now);
  StartAttempt::Answer answer =
      attempt_.run(job, partition, pass.available.view(job, partition, length), pass.now);
  pass.valid_until = std::min(pass.valid_until, answer.valid_until);
  std::visit([&](auto& verdict) { on(pass, job, partition, std::move(verdict)); }, answer.verdict);
  if (!job.pending()) return;
  pass.tried.insert(job.id);
  admission_.unexplained().note(job.id, books_.table().size());
}

// A job whose least time limit alone is allowed in the partition waits there for the backfill,
// which can cut its limit (recorded).
std::optional<Refusal> MainPass::needs_backfill(const Job& job, PartitionIndex partition) const {
  if (!job.request->time_min) return std::nullopt;
  // The gates as if it had asked for its whole limit and nothing less.
  JobRequest whole = *job.request;
  whole.time_min.reset();
  return refused_by_partition(cluster_, whole, partition);
}

// The job's nodes need not be taken out of the view: the selector's books hold them now. A job that
// failed one partition and starts in another one leaves the first failed for the rest of this pass,
// so another pass is asked for.
void MainPass::on(State& pass, Job& job, PartitionIndex partition, Fits verdict) {
  pass.stopped = !actions_.may_start(job);
  if (pass.stopped) return;
  actions_.start(job, partition, std::move(verdict));
  pass.available.claims_changed();
  ++pass.started;
  if (pass.has_failed_a_partition(job.id)) pass.blocker_started = true;
  note_done(pass, job);
}

// Notes that the job's records are looked at again when the walk is over; those of an array once,
// however many of its tasks have started.
void MainPass::note_done(State& pass, Job& job) {
  if (pass.done.empty() || pass.done.back() != &job) pass.done.push_back(&job);
}

void MainPass::on(State& pass, Job& job, PartitionIndex partition, NeedsVictims verdict) {
  const auto count = std::to_string(verdict.victims.size());
  if (!job.waits_for_victims(pass.now)) {
    pass.stopped = !actions_.may_preempt(verdict);
    if (pass.stopped) return;
    actions_.preempt_for(job, std::move(verdict));
    // Jobs behind must not take the nodes that the victims leave (P14).
    pass.available.claims_changed();
  }
  pass.preempting.insert(job.id);
  books_.set_reason(job, Reason::kResources,
                    "waits for the end of the " + count + " jobs that it preempts");
  fail_partition(pass, job, partition);
}

// The partition fails even if the job names the nodes that it waits for (Slurm 22.05, recorded).
void MainPass::on(State& pass, Job& job, PartitionIndex partition, TooFewLeft verdict) {
  books_.set_reason(job, Reason::kResources, std::move(verdict.message));
  if (holds_up_no_other(pass, job)) return;
  pass.fail(partition, job.id);
  pass.available.withhold(partition);
}

// 3.4 step 9, nodes busy: partition failure.
void MainPass::on(State& pass, Job& job, PartitionIndex partition, Busy verdict) {
  books_.set_reason(job, Reason::kResources, std::move(verdict.message));
  fail_partition(pass, job, partition);
}

// 3.4 step 9, required node down: no failure, since no end of another job makes the node come back
// and jobs behind may use the others.
void MainPass::on(State&, Job& job, PartitionIndex, NotAvailable verdict) {
  books_.set_reason(job, Reason::kReqNodeNotAvail, std::move(verdict.message));
}

void MainPass::on(State& pass, Job& job, PartitionIndex, Never verdict) {
  if (partitions_of(cluster_, *job.request).size() > 1) {  // another partition may hold it
    // A reason from another partition, in which the job can run some day, says more than this one.
    if (job.reason == Reason::kNone || job.reason == Reason::kPriority) {
      books_.set_reason(job, Reason::kBadConstraints, std::move(verdict.message));
    }
    return;
  }
  // Held, so that it does not cost a placement in each pass. A changed request, or a release, has
  // it tried again.
  job.held.set(HoldBy::kImpossible);
  books_.set_reason(job, Reason::kBadConstraints, std::move(verdict.message));
  pass.done.push_back(&job);
}

// A limit is the job's own matter: jobs behind may start (R9.8). But with bf_licenses they might
// take the licenses that the backfill has promised to this job (R11.8). It has promised none to a
// job that asks for more than there are, since an administrator has lowered the counter.
void MainPass::on(State& pass, Job& job, PartitionIndex, OverLimit verdict) {
  const ClusterParameters& parameters = cluster_.parameters();
  const bool can_have_them = std::ranges::all_of(job.request->licenses, [&](const auto& asked) {
    return asked.second <= licenses_of(parameters.licenses, asked.first);
  });
  if (verdict.reason == Reason::kLicenses && plans_licenses(parameters) && can_have_them) {
    pass.is_over = true;
  }
  books_.set_reason(job, verdict.reason, std::move(verdict.message));
}

// 10c: a job that is too young, or of too low a priority, for a promise of the backfill.
bool MainPass::holds_up_no_other(State& pass, const Job& job) const {
  const BackfillParameters& parameters = cluster_.parameters().backfill;
  // The backfill keeps no nodes for such a job (8.1 c). If it failed its partition here, nodes
  // would stay idle for a job to which nothing is promised.
  if (job.priority < parameters.min_prio_reserve) return true;
  const base::Instant old = job.eligible_time + parameters.min_age_reserve;
  if (pass.now >= old) return false;
  // A job of that age does hold up others, so the pass's answers hold no longer than that.
  pass.valid_until = std::min(pass.valid_until, old);
  return true;
}

// 10. Partition failure; a job that names all the nodes that it needs withholds only those (a).
void MainPass::fail_partition(State& pass, const Job& job, PartitionIndex partition) {
  if (holds_up_no_other(pass, job)) return;
  const NodeCounts counts = node_counts(cluster_, *job.request, partition);
  // Nodes that it does not name are of no use to it, so jobs behind may have them.
  if (static_cast<int>(job.request->required_nodes.size()) >= counts.min) {
    pass.available.withhold(cluster_.named(job.request->required_nodes));
    return;
  }
  pass.fail(partition, job.id);
  pass.available.withhold(partition);
}

// A specific reason is kept (R2.6).
void MainPass::wait_for_priority(State& pass, Job& job) {
  if (is_held_as_impossible(pass, job)) return;
  if (job.reason == Reason::kNone || job.reason == Reason::kResources) {
    books_.set_reason(job, Reason::kPriority, "jobs ahead of it wait for nodes of its partition");
  }
}

// Slurm says at submission if no nodes could ever hold a job. Here that is found when the job is
// tried, so a new one with devices is tried on no nodes at all where its partition has failed: who
// misspells a type is not to wait for the jobs ahead.
bool MainPass::is_held_as_impossible(State& pass, Job& job) {
  if (job.reason != Reason::kNone || !asks_for_devices(*job.request)) return false;
  const std::vector<PartitionIndex> partitions = partitions_of(cluster_, *job.request);
  if (partitions.size() != 1) return false;
  const NodeSet none{cluster_.node_count()};
  const auto count = static_cast<int>(cluster_.partition(partitions.front()).nodes_ranked.size());
  StartAttempt::Answer answer =
      attempt_.run(job, partitions.front(), {.nodes = none, .in_partition = count}, pass.now);
  Never* const never = std::get_if<Never>(&answer.verdict);
  if (never != nullptr) on(pass, job, partitions.front(), std::move(*never));
  return never != nullptr;
}

// 7. for the jobs behind the point where the walk ended because all partitions had failed. Only
// jobs without a specific reason get a new one, so it looks at those alone and not at the queue.
void MainPass::wait_for_priority_behind(State& pass) {
  admission_.unexplained().forget_if([&](JobId id) {
    Job* const job = books_.find(id);
    const bool waits = job != nullptr && job->pending() && !job->queued.in.empty() && !job->held;
    if (waits && !pass.preempting.contains(id) && !pass.has_its_reason(*job)) {
      wait_for_priority(pass, *job);
    }
    return !(waits && (job->reason == Reason::kNone || job->reason == Reason::kResources));
  });
}

}  // namespace sched
