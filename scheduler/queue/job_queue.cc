#include "scheduler/queue/job_queue.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace sched {
namespace {

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

bool is_fifo(const Cluster& cluster) {
  if (cluster.parameters().scheduler != SchedulerType::kBuiltin) return false;
  if (cluster.parameters().priority.type != PriorityType::kBasic) return false;
  const std::vector<PartitionIndex>& partitions = cluster.partitions();
  return std::all_of(partitions.begin(), partitions.end(), [&](PartitionIndex partition) {
    return cluster.partition(partition).tier() == cluster.partition(partitions.front()).tier();
  });
}

bool operator<(const QueueRecord& a, const QueueRecord& b) {
  return std::tie(a.fifo_order, b.tier, b.priority, a.submit_time, a.job, a.partition_order) <
         std::tie(b.fifo_order, a.tier, a.priority, b.submit_time, b.job, b.partition_order);
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

std::size_t JobQueue::lane_of(const Job& job, const Cluster& cluster) const {
  if (lanes_.size() == 1) return 0;
  const auto qos = cluster.find_qos(job.request.qos);
  return qos ? qos->index() + 1 : 0;
}

void JobQueue::insert(const QueueRecord& record, const Cluster& cluster) {
  Lane& lane = lanes_[lane_of(*record.record, cluster)];
  if (!lane.records.insert(Place{in_lane(lane, record)}).second) return;
  ++size_;
  if (counts_.size() <= record.partition.index()) counts_.resize(record.partition.index() + 1);
  ++counts_[record.partition.index()];
}

void JobQueue::erase(const QueueRecord& record, const Cluster& cluster) {
  Lane& lane = lanes_[lane_of(*record.record, cluster)];
  if (lane.records.erase(Place{in_lane(lane, record)}) == 0) return;
  --size_;
  --counts_[record.partition.index()];
}

// With several lanes which of them goes first may depend on priorities, too.
bool JobQueue::set_priorities(const std::function<Priority(const QueueRecord&)>& priority_of) {
  bool changed = lanes_.size() > 1;
  for (Lane& lane : lanes_) {
    // A walk over the set goes from one cache miss to the next, so there is only one.
    std::vector<const Place*> places;
    std::vector<QueueRecord> records;
    places.reserve(lane.records.size());
    records.reserve(lane.records.size());
    for (const Place& place : lane.records) {
      places.push_back(&place);
      QueueRecord& record = records.emplace_back(place.record);
      record.priority = priority_of(record);
      if (lane.within) record.within = record.priority;
    }
    if (!std::is_sorted(records.begin(), records.end(), InLane{})) {
      std::sort(records.begin(), records.end(), InLane{});
      changed = true;
    }
    for (std::size_t i = 0; i < places.size(); ++i) places[i]->record = records[i];
  }
  return changed;
}

// Of the records from `head` on: the first of each tier has the highest priority of its tier.
Priority JobQueue::highest_from(const Records& records, Records::const_iterator head) {
  Priority highest{};
  while (head != records.end()) {
    highest = std::max(highest, head->record.priority);
    QueueRecord last = head->record;
    last.within = last.priority = Priority{};
    last.submit_time = base::kNever;
    head = records.upper_bound(Place{last});
  }
  return highest;
}

// With lanes: of the heads of all lanes the first by key goes next, except for heads that have to
// wait for another lane. A head waits while that lane has any record or, where priority is asked
// too (PreemptMode=PRIORITY), one of a higher priority than its own. Cost of a step: O(lanes²) in
// the worst case; there are few QOS.
void JobQueue::walk(const std::function<bool(const QueueRecord&)>& visit) const {
  if (lanes_.size() == 1) {
    for (const Place& place : lanes_[0].records) {
      if (!visit(place.record)) return;
    }
    return;
  }
  std::vector<Records::const_iterator> heads;
  for (const Lane& lane : lanes_) heads.push_back(lane.records.begin());
  const auto empty = [&](std::size_t i) { return heads[i] == lanes_[i].records.end(); };
  const auto waits_for = [&](std::size_t i, const Before& first) {
    if (!first.by_priority) return !empty(first.lane);
    return highest_from(lanes_[first.lane].records, heads[first.lane]) > heads[i]->record.priority;
  };
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      if (empty(i)) continue;
      if (best && !(heads[i]->record < heads[*best]->record)) continue;
      if (std::ranges::none_of(lanes_[i].before,
                               [&](const Before& first) { return waits_for(i, first); })) {
        best = i;
      }
    }
    if (!best || !visit((heads[*best]++)->record)) return;
  }
}

}  // namespace sched
