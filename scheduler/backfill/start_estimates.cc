#include "scheduler/backfill/start_estimates.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "scheduler/place/node_counts.h"

namespace sched {
namespace {

// The default of bf_max_job_test stands for a key that is not set. Slurm looks at one more
// (recorded).
std::size_t most_records(const ClusterParameters& parameters) {
  const int tested = parameters.backfill.max_job_test;
  const int most = tested == BackfillParameters{}.max_job_test ? kEstimatesMax : tested;
  return static_cast<std::size_t>(most) + (parameters.quirks.estimates_take_one_more ? 1 : 0);
}

}  // namespace

base::Duration estimates_interval(const ClusterParameters& parameters) {
  // The defaults stand for keys that are not set.
  base::Duration interval = std::chrono::seconds{30};
  if (parameters.queue.sched_interval != QueueParameters{}.sched_interval) {
    interval = parameters.queue.sched_interval;
  } else if (parameters.backfill.interval != BackfillParameters{}.interval) {
    interval = parameters.backfill.interval;
  }
  return std::max<base::Duration>(interval, std::chrono::seconds{1});
}

// One record of each job: the first of the queue. As recorded in the order of QOS and priorities,
// also where the main pass walks the job table (P21).
//
// Where they are in queue order the walk ends with the last record that is looked at. If they must
// be sorted all are needed, and the surplus is cut off afterwards.
void StartEstimates::begin(base::Instant now) {
  lookahead_.changed();
  Plan& plan = plan_.emplace(cluster_, books_, whole_second(cluster_.parameters(), now));
  plan.configuration = cluster_.configuration_version();
  if (!cluster_.parameters().quirks.estimates_use_all_nodes) plan.calendar.read_claims(now);
  const std::size_t most = most_records(cluster_.parameters());
  const bool is_sorted =
      !cluster_.parameters().quirks.estimates_go_by_priority || !is_fifo(cluster_);
  std::set<JobId> seen;
  admission_.queue().walk([&](const QueueRecord& record) {
    if (seen.insert(record.job).second) plan.records.push_back({record.job, record.partition});
    return !is_sorted || plan.records.size() < most;
  });
  if (is_sorted) return;
  sort_by_priority(plan.records);
  if (plan.records.size() > most) {
    plan.records.erase(plan.records.begin() + static_cast<std::ptrdiff_t>(most),
                       plan.records.end());
  }
}

// Selection, not std::sort, whose result is undefined if the comparison is not an order; which QOS
// may preempt which is not (P13). Each walk over the records that are left takes the one that beats
// the best before it. O(records²) does not matter, since only replays of recordings come here.
void StartEstimates::sort_by_priority(std::vector<Record>& records) const {
  const auto qos_of = [&](const Record& record) {
    return cluster_.find_qos(books_.find(record.job)->request->qos);
  };
  const bool by_qos = cluster_.parameters().preempt_type == PreemptType::kQos;
  const auto may_preempt = [&](const Record& a, const Record& b) {
    const auto first = qos_of(a), second = qos_of(b);
    return by_qos && first && second && cluster_.qos_may_preempt(*first, *second);
  };
  const auto before = [&](const Record& a, const Record& b) {
    const bool first = may_preempt(a, b), second = may_preempt(b, a);
    if (first != second) return first;
    return books_.find(a.job)->priority > books_.find(b.job)->priority;
  };
  for (auto next = records.begin(); next != records.end(); ++next) {
    auto best = next;
    for (auto other = next + 1; other != records.end(); ++other) {
      if (before(*other, *best)) best = other;
    }
    std::rotate(next, best, best + 1);
  }
}

// The lookahead counts from the instant of the beginning in all steps, so that the estimates of
// one round fit together.
bool StartEstimates::step(base::Instant now, int records) {
  Plan& plan = *plan_;
  // Nodes are known by rank, and ranks may be others now. The next estimates begin from scratch.
  if (plan.configuration != cluster_.configuration_version()) {
    plan_.reset();
    passed_version_ = 0;
    return true;
  }
  lookahead_.begin(plan.now);
  for (; records > 0 && plan.next < plan.records.size(); --records) {
    estimate(plan.records[plan.next++], now);
  }
  lookahead_.end();
  return plan.next == plan.records.size() && finish();
}

bool StartEstimates::finish() {
  passed_until_ = plan_->valid_until;
  passed_version_ = books_.version();
  tell_plans();
  plan_.reset();
  return true;
}

// Takes back the estimates of jobs that no longer have one.
void StartEstimates::tell_plans() {
  for (const JobId id : std::exchange(told_, {})) {
    Job* const job = books_.find(id);
    if (job == nullptr || !job->pending() || plan_->expected.contains(id)) continue;
    books_.set_plan(*job, std::nullopt);
  }
  for (auto& [id, expected] : plan_->expected) {
    Job* const job = books_.find(id);
    if (job == nullptr || !job->pending() || job->queued.in.empty()) continue;
    books_.set_plan(*job, std::move(expected));
    told_.insert(id);
  }
}

// Returns the nodes that are up and that the job may use when other users have left them. As
// recorded all nodes: Slurm's estimates do not ask what the partition has, what the job's features
// are, or which nodes are up (8.3).
NodeSet StartEstimates::usable_nodes(const Job& job, PartitionIndex partition, base::Instant now) {
  if (cluster_.parameters().quirks.estimates_use_all_nodes)
    return NodeSet::all(cluster_.node_count());
  if (now < job.retry.nodes_until) {
    plan_->valid_until = std::min(plan_->valid_until, job.retry.nodes_until);
  }
  return lookahead_.placement().open_nodes(job, partition, now, groups_.up(), {}, true);
}

// 1. Pass over records of which nothing says when they start: held, over a limit, too few nodes
//    that ever fit, a required node that is not among them.
// 2. Ask the lookahead when and where the job starts if it had the cluster to itself, but for the
//    allocated jobs.
// 3. Put it off behind the jobs before it.
// 4. Note its nodes as taken until its own end, for those behind it.
//
// A job for which there is no answer takes no nodes, and those behind it are estimated as if it
// were not there.
void StartEstimates::estimate(const Record& record, base::Instant now) {
  Plan& plan = *plan_;
  const Job* const job = books_.find(record.job);
  if (job == nullptr || !job->pending() || job->held || job->queued.in.empty()) return;
  // It is not known when a limit lets it start.
  if (limits_on_resources_.over_before(*job, record.partition)) return;
  const NodeSet nodes = usable_nodes(*job, record.partition, now);
  if (!nodes.has_at_least(node_counts(cluster_, *job->request, record.partition).min)) return;
  if (!nodes.contains(cluster_.named(job->request->required_nodes))) return;
  Lookahead::Answer answer =
      lookahead_.will_run({.job = *job,
                           .partition = record.partition,
                           .nodes = nodes,
                           .until = std::nullopt,
                           .estimates_only = true,
                           .on_any_node = cluster_.parameters().quirks.estimates_use_all_nodes});
  if (answer.kind != Lookahead::Answer::Kind::kStarts) return;
  const base::Instant start = put_off(record, answer);
  if (start == base::kNever) return;
  const base::Instant end =
      start + limits_.limit_of(*job, record.partition, now).value_or(kUnlimitedTime);
  plan.previous_end = end;
  plan.last_start[record.partition] = start;
  // Behind that instant it would be overdue, and the estimates are made again.
  if (start > plan.now) plan.valid_until = std::min(plan.valid_until, start);
  Job::Plan expected{.start = start, .nodes = {}};
  for (int rank = answer.nodes.next(0); rank >= 0; rank = answer.nodes.next(rank + 1)) {
    expected.nodes.push_back(cluster_.node_at(rank));
  }
  plan.calendar.promise(answer.nodes, start, end);
  plan.expected.emplace(job->id, std::move(expected));
}

// Returns when the job is expected, given those before it. For example, A gets n1 until 10:00, B
// behind it n2 until 12:00, and C wants n1 and could start at 9:00 as far as allocated jobs go. C
// is put off to 10:00, when A ends. As recorded it is put off to 12:00: Slurm looks at the job
// before it, which is B, though that has another node.
//
// While a claim without an end lasts, no start is expected.
base::Instant StartEstimates::put_off(const Record& record, const Lookahead::Answer& answer) const {
  const NodeCalendar::Who who{.job = record.job,
                              .tier = cluster_.partition(record.partition).tier()};
  const auto taken_until = plan_->calendar.kept_until(who, answer.nodes);
  if (cluster_.parameters().quirks.estimates_follow_the_last) {
    return taken_until ? std::max(answer.start, plan_->previous_end) : answer.start;
  }
  const auto ahead = plan_->last_start.find(record.partition);
  const base::Instant first = ahead == plan_->last_start.end() ? answer.start : ahead->second;
  return std::max({answer.start, taken_until.value_or(answer.start), first});
}

}  // namespace sched
