#include "scheduler/queue/job_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sched {
namespace {

// Records that are merged in the time in which one gets its priority, or in less.
constexpr std::size_t kMergesForOne = 4;

// reach[a][b]: a may preempt b, directly or through others. Used only to detect preemption cycles:
// the queue order considers direct preemption only, because preemption is not transitive (1.4).
std::vector<std::vector<bool>> reachable(const Cluster& cluster) {
  const std::size_t count = cluster.qos().size();
  std::vector<std::vector<bool>> reach(count, std::vector<bool>(count, false));
  const auto index = [](std::size_t i) { return QosIndex{static_cast<std::int32_t>(i)}; };
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      reach[a][b] = a != b && cluster.qos_may_preempt(index(a), index(b));
    }
  }
  for (std::size_t via = 0; via < count; ++via) {
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; reach[a][via] && b < count; ++b) {
        if (reach[via][b]) reach[a][b] = true;
      }
    }
  }
  return reach;
}

}  // namespace

// R9.7 and P21: with sched/builtin, priority/basic and equal tiers Slurm walks the job table
// itself.
bool is_fifo(const Cluster& cluster) {
  if (cluster.parameters().scheduler != SchedulerType::kBuiltin) return false;
  if (cluster.parameters().priority.type != PriorityType::kBasic) return false;
  const std::vector<PartitionIndex>& partitions = cluster.partitions();
  return std::all_of(partitions.begin(), partitions.end(), [&](PartitionIndex partition) {
    return cluster.partition(partition).tier() == cluster.partition(partitions.front()).tier();
  });
}

// Under preempt/qos the order is not one key: a job stands behind every job whose QOS may preempt
// its own (1.4). So each QOS has a lane, in which one key decides, and each lane knows the lanes
// that go before it. A pair that may preempt each other, directly or through others, has no order:
// it is left out, or the walk would find no lane to begin with.
void JobQueue::configure(const Cluster& cluster) {
  size_ = 0;
  counts_.assign(static_cast<std::size_t>(cluster.partition_slots()), 0);
  lanes_.assign(1, Lane{});
  if (cluster.parameters().preempt_type != PreemptType::kQos || is_fifo(cluster)) return;
  const auto reach = reachable(cluster);
  const ClusterParameters& parameters = cluster.parameters();
  const std::vector<QosConfig>& qos = cluster.qos();
  // Lane 0: jobs without a QOS; lane i + 1: QOS i.
  lanes_.assign(qos.size() + 1, Lane{});
  for (std::size_t a = 0; a < qos.size(); ++a) {
    lanes_[a + 1].within = parameters.preempt_within || qos[a].preempt_within;
    const bool by_priority = parameters.preempt_priority || qos[a].preempt_priority;
    for (std::size_t b = 0; b < qos.size(); ++b) {
      const QosIndex first{static_cast<std::int32_t>(a)};
      const QosIndex second{static_cast<std::int32_t>(b)};
      if (a == b || reach[b][a] || !cluster.qos_may_preempt(first, second)) continue;
      lanes_[b + 1].before.push_back({.lane = a + 1, .by_priority = by_priority});
    }
  }
}

// Returns a single lane unless preempt/qos is on.
std::size_t JobQueue::lane_of(const Job& job, const Cluster& cluster) const {
  if (lanes_.size() == 1) return 0;
  const auto qos = cluster.find_qos(job.request->qos);
  return qos ? qos->index() + 1 : 0;
}

// A record that is in the queue already is not counted twice.
void JobQueue::insert(const QueueRecord& record, const Cluster& cluster) {
  Lane& lane = lanes_[lane_of(*record.record, cluster)];
  const QueueRecord new_one = in_lane(lane, record);
  if (!(lane.reordering ? lane.reordering->insert(new_one) : lane.records.insert(new_one))) return;
  ++size_;
  if (counts_.size() <= record.partition.index()) counts_.resize(record.partition.index() + 1);
  ++counts_[record.partition.index()];
}

// While new priorities are worked out the record is in one of two places: among those with old
// ones, or in the Reordering.
bool JobQueue::erase(const QueueRecord& record, const Cluster& cluster) {
  Lane& lane = lanes_[lane_of(*record.record, cluster)];
  const QueueRecord erased = in_lane(lane, record);
  const bool waited = lane.records.erase(erased);
  if (!waited && !(lane.reordering && lane.reordering->erase(erased))) return false;
  --size_;
  --counts_[record.partition.index()];
  return waited && lane.reordering;
}

// Every record of a lane has an old priority now, so its Reordering is empty.
void JobQueue::begin_priorities() {
  for (Lane& lane : lanes_) lane.reordering.emplace();
}

// 1. Lane by lane, take the first records that still have an old priority, give them the new one,
//    and hand them to the lane's Reordering as a piece.
// 2. When no record has an old priority, merge the pieces of each lane.
// 3. When all are merged, the lanes have their order again.
//
// `count` bounds the work of the step whatever mix of (1) and (2) it does. Records that are
// inserted meanwhile have a new priority already and go to the Reordering at once.
//
// With several lanes which of them goes first may depend on priorities, too.
std::optional<bool> JobQueue::step_priorities(
    std::size_t count, const std::function<Priority(const QueueRecord&)>& priority_of) {
  for (Lane& lane : lanes_) {
    if (lane.records.empty()) continue;
    if (count == 0) return std::nullopt;
    SortedRecords records = lane.records.take_first(count);
    const bool moved = records.change_all([&](QueueRecord& record) {
      --count;
      record.priority = priority_of(record);
      record = in_lane(lane, record);
    });
    lane.reordering->add(std::move(records), moved);
    if (!lane.records.empty()) return std::nullopt;
  }
  count *= kMergesForOne;
  for (Lane& lane : lanes_) {
    const std::optional<std::size_t> left = lane.reordering->merge(count);
    if (!left) return std::nullopt;
    count = *left;
  }
  bool moved = lanes_.size() > 1;
  for (Lane& lane : lanes_) {
    moved = moved || lane.reordering->moved();
    lane.records = (*std::move(lane.reordering)).take();
    lane.reordering.reset();
  }
  return moved;
}

// Returns the highest priority of the records from `head` on: the first of each tier has the
// highest of its tier. The last key that could stand in that tier is made up, and the walk goes on
// behind it: one look for each tier instead of one for each record. In a lane with WITHIN the first
// record has the highest priority of all, and nothing stands behind the key.
Priority JobQueue::highest_from(const SortedRecords& records, SortedRecords::Position head) {
  Priority highest{};
  while (!records.is_end(head)) {
    highest = std::max(highest, records[head].priority);
    QueueRecord last = records[head];
    last.within = last.priority = Priority{};
    last.submit_time = base::kNever;
    head = records.behind(last);
  }
  return highest;
}

// Visits, of the heads of all lanes, the first by key, except for heads that have to wait for
// another lane. A head waits while that lane has any record or, where priority is asked too
// (PreemptMode=PRIORITY), one of a higher priority than its own. Cost of a step: O(lanes²) in the
// worst case; there are few QOS.
//
// For example, QOS high may preempt low, other has nothing to do with either, and all jobs are in
// one tier. The lanes hold priorities high: 10; low: 50, 40; other: 30. Low waits for high, so the
// heads that may go are 10 and 30, and 30 goes first, then 10; now high is empty, and 50 and 40
// follow. One key for all would put 50 first, before the job that may preempt it.
//
// Some head can always go: lanes that would wait for each other in a circle are no `before` of one
// another (configure()).
void JobQueue::walk(const std::function<bool(const QueueRecord&)>& visit) const {
  CHECK(!lanes_.front().reordering);
  std::vector<SortedRecords::Position> heads(lanes_.size());
  if (lanes_.size() == 1) {
    const SortedRecords& records = lanes_[0].records;
    while (!records.is_end(heads[0]) && visit(records[heads[0]])) {
      heads[0] = records.next(heads[0]);
    }
    return;
  }
  const auto head_of = [&](std::size_t i) -> const QueueRecord& {
    return lanes_[i].records[heads[i]];
  };
  const auto empty = [&](std::size_t i) { return lanes_[i].records.is_end(heads[i]); };
  const auto waits_for = [&](std::size_t i, const Before& first) {
    if (!first.by_priority) return !empty(first.lane);
    return highest_from(lanes_[first.lane].records, heads[first.lane]) > head_of(i).priority;
  };
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (empty(i)) continue;
      if (best && !(head_of(i) < head_of(*best))) continue;
      if (std::ranges::none_of(lanes_[i].before,
                               [&](const Before& first) { return waits_for(i, first); })) {
        best = i;
      }
    }
    if (!best || !visit(head_of(*best))) return;
    heads[*best] = lanes_[*best].records.next(heads[*best]);
  }
}

}  // namespace sched
