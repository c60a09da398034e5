// The main pass (3.4): its steps carry the rule's numbers.
#include <algorithm>

#include "scheduler/engine/engine.h"
#include "scheduler/model/qos_order.h"

namespace sched {

struct Engine::PassState {
  PassState(const NodeGroups& groups, const Cluster& cluster, const JobQueue& queue)
      : available{groups.up()},
        failed(static_cast<std::size_t>(cluster.partition_slots()), false),
        tested_in(failed.size(), 0),
        available_in(failed.size()),
        failed_by(failed.size()),
        left{queue.counts()},
        open{static_cast<int>(queue.size())} {
    left.resize(failed.size(), 0);
  }

  void visit(const QueueRecord& record) {
    --left[record.partition.index()];
    if (!failed[record.partition.index()]) --open;
    if (record.record->queued_in.size() > 1) ++visits[record.job];
  }
  void fail(PartitionIndex partition, JobId by) {
    if (!failed[partition.index()]) open -= left[partition.index()];
    failed[partition.index()] = true;
    failed_by[partition.index()] = by;
  }
  bool has_failed_a_partition(JobId job) const {
    return std::find(failed_by.begin(), failed_by.end(), job) != failed_by.end();
  }
  // Fewer nodes are left.
  void shrink(const NodeSet& without) {
    available -= without;
    std::fill(available_in.begin(), available_in.end(), std::nullopt);
  }

  // All records of the job were reached, and it was tried in a partition that had not failed.
  bool has_its_reason(const Job& job) const {
    if (!tried.contains(job.id)) return false;
    const auto found = visits.find(job.id);
    return found == visits.end() || found->second == static_cast<int>(job.queued_in.size());
  }

  struct Claim {
    const Job* job;
    int tier;  // the highest in which it waits
    NodeSet nodes;
  };
  NodeSet available;                             // A
  std::vector<Claim> claims;                     // of preemptors that wait for their victims (P14)
  std::vector<bool> failed;                      // by PartitionIndex
  std::vector<int> tested_in;                    // likewise
  std::vector<std::optional<int>> available_in;  // nodes of A, likewise
  std::vector<std::optional<JobId>> failed_by;   // likewise
  bool passed_over_for_nothing = false;  // who failed a partition has started in another one
  int tested = 0;
  int started = 0;
  std::vector<int> left;        // records not visited yet, by PartitionIndex
  int open;                     // those of them in partitions that have not failed
  std::set<JobId> tried;        // and not started
  std::map<JobId, int> visits;  // of jobs with several records
  std::vector<Job*> done;       // started, or held: their records go after the walk
  std::set<JobId> preempting;   // in progress through one partition (step 3)
  base::Instant valid_until = base::kNever;
};

void Engine::on(const Pass& event) {
  if (event.main || event.backfill) main_pass(std::nullopt);
}

bool Engine::main_pass(std::optional<int> depth) {
  expire_claims();
  const std::uint64_t version = books_.version();
  if (passed_version_ == version && now_ < passed_until_ && !depth) return false;
  PassState pass{groups_, cluster_, queue_};  // 2
  for (const JobId id : books_.claimants()) note_claim(pass, *books_.find(id));
  const int most = cluster_.parameters().queue.max_job_start;  // 0 = any number
  bool complete = true;
  books_.begin_pass();
  queue_.walk([&](const QueueRecord& record) {
    if ((depth && pass.tested >= *depth) || (most && pass.started >= most)) {  // 5
      complete = false;
      return false;
    }
    pass.visit(record);
    return try_record(pass, record) && pass.open > 0;
  });
  if (complete) skip_the_rest(pass);
  books_.end_pass();
  for (Job* job : pass.done) {
    if (job->pending()) {
      enqueue(*job);
    } else {
      dequeue(*job);
    }
  }
  for (const JobId id : books_.claimants()) {
    if (const Job* job = books_.find(id))
      pass.valid_until = std::min(pass.valid_until, job->claim_until);
  }
  passed_until_ = pass.valid_until;
  if (complete && books_.version() == version) passed_version_ = version;
  return pass.passed_over_for_nothing;
}

// P14: a claim holds until its victims must have been gone; then the job competes anew.
void Engine::expire_claims() {
  const std::set<JobId> claimants = books_.claimants();
  for (const JobId id : claimants) {
    Job& job = *books_.find(id);
    if (now_ < job.claim_until) continue;
    books_.clear_claim(job, true, now_);
  }
}

void Engine::note_claim(PassState& pass, const Job& job) const {
  PassState::Claim claim{.job = &job, .tier = 0, .nodes = cluster_.no_nodes()};
  for (const PartitionIndex partition : job.queued_in) {
    claim.tier = std::max(claim.tier, cluster_.partition(partition).tier());
  }
  for (const NodeAllocation& use : job.claim->nodes) {
    if (cluster_.exists(use.node)) claim.nodes.set(cluster_.rank(use.node));
  }
  pass.claims.push_back(std::move(claim));
}

bool Engine::try_record(PassState& pass, const QueueRecord& record) {
  Job& job = *record.record;
  if (!job.pending() || job.held || pass.preempting.contains(job.id)) return true;  // 3
  ++pass.tested;
  const std::size_t slot = record.partition.index();
  const int partition_depth = cluster_.parameters().queue.partition_job_depth;
  if (partition_depth > 0 && pass.tested_in[slot]++ >= partition_depth) {  // 6
    skip_for_priority(job);
    return true;
  }
  if (pass.failed[slot]) {  // 7
    skip_for_priority(job);
    return true;
  }
  if (deadline_passed(job)) {
    pass.done.push_back(&job);
    return true;
  }
  place(pass, job, record.partition);
  if (job.pending()) {
    pass.tried.insert(job.id);
    note_unexplained(job.id);
  }
  return true;
}

// R2.6: a specific reason is kept.
void Engine::skip_for_priority(Job& job) {
  if (job.reason == Reason::kNone || job.reason == Reason::kResources) {
    set_reason(job, Reason::kPriority, "jobs ahead of it wait for nodes of its partition");
  }
}

void Engine::note_unexplained(JobId id) {
  if (!unexplained_.empty() && unexplained_.back() == id) return;
  unexplained_.push_back(id);
  if (unexplained_.size() > 2 * books_.table().size() + 1024) sort_unexplained();
}

void Engine::sort_unexplained() {
  if (!std::is_sorted(unexplained_.begin(), unexplained_.end())) {
    std::sort(unexplained_.begin(), unexplained_.end());
  }
  unexplained_.erase(std::unique(unexplained_.begin(), unexplained_.end()), unexplained_.end());
}

// Step 7 for all records behind the point where no partition was left that had not failed.
void Engine::skip_the_rest(const PassState& pass) {
  sort_unexplained();
  std::erase_if(unexplained_, [&](JobId id) {
    Job* const job = books_.find(id);
    const bool waits = job != nullptr && job->pending() && !job->queued_in.empty() && !job->held;
    if (waits && !pass.preempting.contains(id) && !pass.has_its_reason(*job)) {
      skip_for_priority(*job);
    }
    return !(waits && (job->reason == Reason::kNone || job->reason == Reason::kResources));
  });
}

// 10
void Engine::fail_partition(PassState& pass, const Job& job, PartitionIndex partition) {
  const NodeCounts counts = node_counts(cluster_, job.request, partition);
  if (static_cast<int>(job.request.required_nodes.size()) >= counts.min) {
    pass.shrink(cluster_.named(job.request.required_nodes));
    return;
  }
  pass.fail(partition, job.id);
  pass.shrink(cluster_.partition(partition).nodes);
}

// What jobs of this QOS hold; whether it is theirs or their partition's does not matter.
Engine::QosUse Engine::use_of(const QosConfig& qos, const std::string& user) const {
  QosUse use;
  for (const auto& [order, job] : books_.allocated()) {
    if (job->request.qos != qos.name &&
        cluster_.partition(*job->partition).config.qos != qos.name) {
      continue;
    }
    int cpus = 0;
    for (const NodeAllocation& held : job->allocation.nodes) cpus += held.cpus;
    use.cpus += cpus;
    if (job->request.user != user) continue;
    ++use.user_jobs;
    use.user_cpus += cpus;
  }
  return use;
}

// Empty, or which limit of a QOS forbids the job to start in the partition with so many CPUs. Cost:
// O(allocated jobs) where there are limits.
std::string Engine::over_qos_limit(const Job& job, PartitionIndex partition, int cpus) const {
  const QosOrder order = qos_order(cluster_, job.request.qos, partition);
  for (const QosConfig* const qos : order) {
    const auto counts = [&](std::optional<int> QosConfig::*limit) {
      return qos_with(order, limit) == qos;
    };
    const bool jobs = counts(&QosConfig::max_jobs_per_user);
    const bool user_cpus = counts(&QosConfig::max_cpus_per_user);
    const bool group_cpus = counts(&QosConfig::group_cpus);
    if (qos == nullptr || (!jobs && !user_cpus && !group_cpus)) continue;
    const QosUse use = use_of(*qos, job.request.user);
    const auto over = [&](bool is_ours, const std::optional<int>& limit, int wanted,
                          const char* what) {
      if (!is_ours || wanted <= *limit) return std::string{};
      return "QOS " + qos->name + " allows " + std::to_string(*limit) + " " + what +
             "; with this job it would be " + std::to_string(wanted);
    };
    for (const std::string& sentence :
         {over(jobs, qos->max_jobs_per_user, use.user_jobs + 1, "jobs per user"),
          over(user_cpus, qos->max_cpus_per_user, use.user_cpus + cpus, "CPUs per user"),
          over(group_cpus, qos->group_cpus, use.cpus + cpus, "CPUs in all")}) {
      if (!sentence.empty()) return sentence;
    }
  }
  return {};
}

// 13.3: the last instant at which it may start; nothing = it has no deadline.
std::optional<base::Instant> Engine::latest_start(const Job& job) {
  if (!job.request.deadline) return std::nullopt;
  const auto limit = job.request.time_min ? job.request.time_min : job.request.time_limit;
  return *job.request.deadline - limit.value_or(base::Duration{0});
}

bool Engine::deadline_passed(Job& job) {
  const auto latest = latest_start(job);
  if (!latest || now_ <= *latest) return false;
  books_.clear_claim(job, false, now_);
  books_.finish(job, JobState::kDeadline);
  return true;
}

void Engine::place(PassState& pass, Job& job, PartitionIndex partition) {
  const NodeCounts counts = node_counts(cluster_, job.request, partition);
  const Partition& where = cluster_.partition(partition);
  std::optional<NodeSet> for_this_job;  // A, with the claims
  if (!pass.claims.empty()) for_this_job = pass.available;
  for (const PassState::Claim& claim : pass.claims) {
    if (claim.job == &job) {  // whoever failed before it did not get these
      *for_this_job |= claim.nodes & groups_.up();
    } else if (where.tier() <= claim.tier) {
      *for_this_job -=
          claim.nodes;  // a higher tier's job may have them: it might preempt the claimant
    }
  }
  const NodeSet& available = for_this_job ? *for_this_job : pass.available;
  std::optional<int>& known_count = pass.available_in[partition.index()];
  if (!known_count) known_count = pass.available.count_and(where.nodes);
  const int left = for_this_job ? available.count_and(where.nodes) : *known_count;
  if (left < counts.min && static_cast<int>(where.nodes_ranked.size()) >= counts.min) {  // 8
    set_reason(job, Reason::kResources,
               "needs " + std::to_string(counts.min) + " nodes and " + std::to_string(left) +
                   " are left; the others are down, drained or kept for jobs ahead of it");
    pass.fail(partition,
              job.id);  // 10 without (a): Slurm 22.05 fails the partition, also for a node list
    pass.shrink(where.nodes);
    return;
  }
  const int cpus = tasks_of(job.request, counts.min) * job.request.cpus_per_task;
  if (std::string over = over_qos_limit(job, partition, cpus); !over.empty()) {
    set_reason(job, Reason::kQosLimit, std::move(over));
    return;
  }
  const bool claims = job.claim && now_ < job.claim_until;
  PlacementOutcome outcome = placement_.place(
      books_.selector(),
      {.job = job, .partition = partition, .available = available, .now = now_});  // 9
  pass.valid_until = std::min({pass.valid_until, outcome.valid_until,
                               job.avoid_until > now_ ? job.avoid_until : base::kNever});
  switch (outcome.result) {
    case PlacementResult::kFits:
      break;
    case PlacementResult::kBusy:
      set_reason(job, Reason::kResources, std::move(outcome.message));
      fail_partition(pass, job, partition);
      return;
    case PlacementResult::kNotAvailable:
      set_reason(job, Reason::kReqNodeNotAvail, std::move(outcome.message));
      return;
    case PlacementResult::kNever:
      if (partitions_of(job.request).size() > 1) {  // another partition may hold it
        if (job.reason == Reason::kNone || job.reason == Reason::kPriority) {
          set_reason(job, Reason::kBadConstraints, std::move(outcome.message));
        }
        return;
      }
      job.held = Reason::kBadConstraints;
      set_reason(job, Reason::kBadConstraints, std::move(outcome.message));
      pass.done.push_back(&job);
      return;
  }
  const bool waits = std::any_of(outcome.victims.begin(), outcome.victims.end(),
                                 [](const Candidate& victim) { return victim.must_end(); });
  if (waits) {  // 7.7 step 3
    if (!claims) {
      preempt_victims(job, outcome);
      note_claim(pass, job);
    }
    pass.preempting.insert(job.id);
    const auto count = std::to_string(outcome.victims.size());
    set_reason(job, Reason::kResources,
               "waits for the end of the " + count + " jobs that it preempts");
    fail_partition(pass, job, partition);
    return;
  }
  int allocated_cpus = 0;
  for (const NodeAllocation& use : outcome.allocation->nodes) allocated_cpus += use.cpus;
  if (std::string over = over_qos_limit(job, partition, allocated_cpus);
      !over.empty()) {  // 3.5 step 6
    set_reason(job, Reason::kQosLimit, std::move(over));
    return;
  }
  start(job, partition, *std::move(outcome.allocation), outcome.sharing);
  ++pass.started;
  if (pass.has_failed_a_partition(job.id)) pass.passed_over_for_nothing = true;
  pass.done.push_back(&job);
}

}  // namespace sched
