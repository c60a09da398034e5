#include "scheduler/preempt/rules.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "scheduler/model/qos_order.h"

namespace sched::preempt {
namespace {

// Both halves of the key are 16 bits wide (7.4).
constexpr std::int64_t kKeyMax = 65535;

const PartitionConfig& partition_of(const Cluster& cluster, const Job& job) {
  return cluster.partition(*job.partition).config;
}

// 7.3 step 6: the preemptor's partition counts, not the nodes that it will get.
bool shares_a_node(const Cluster& cluster, const Job& job, const NodeSet& nodes) {
  return std::any_of(job.allocation.nodes.begin(), job.allocation.nodes.end(),
                     [&](const NodeAllocation& use) {
                       return cluster.exists(use.node) && nodes.test(cluster.rank(use.node));
                     });
}

// 7.4: lowest standing first, smaller jobs first.
std::int64_t standing(const Cluster& cluster, const Job& victim) {
  std::int64_t group = 0;
  if (cluster.parameters().preempt_type == PreemptType::kQos) {
    if (const auto* const qos = qos_named(cluster, victim.request->qos)) group = qos->priority;
  } else {
    group = partition_of(cluster, victim).priority_tier;
  }
  const auto nodes = static_cast<std::int64_t>(victim.allocation.nodes.size());
  return (std::min(group, kKeyMax) << 16) + std::min(nodes, kKeyMax);
}

}  // namespace

// 7.1. The mode of the victim's partition or QOS decides, never that of the preemptor.
PreemptMode effective_mode(const Cluster& cluster, const Job& victim) {
  const ClusterParameters& parameters = cluster.parameters();
  switch (parameters.preempt_type) {
    case PreemptType::kNone:
      return PreemptMode::kOff;
    case PreemptType::kPartitionPriority:
      return partition_of(cluster, victim).preempt_mode.value_or(parameters.preempt_mode);
    case PreemptType::kQos: {
      const QosConfig* const qos = qos_named(cluster, victim.request->qos);
      if (qos == nullptr) return parameters.preempt_mode;
      return qos->preempt_mode.value_or(parameters.preempt_mode);
    }
  }
  return PreemptMode::kOff;
}

namespace {

// T10: a job that its user has suspended counts as priority 0.
Priority priority_of(const Job& victim) {
  return victim.user_suspended ? Priority{0} : victim.priority;
}

// Returns until when the gang may not suspend the job for a higher tier (4.5.2 test 2). The gang
// does not check candidates, so the exempt time counts here.
std::optional<base::Instant> shielded_until(const Cluster& cluster, PartitionIndex partition,
                                            const Job& victim) {
  if (victim.select.victim_mode != PreemptMode::kSuspend) return std::nullopt;
  // Without a shadow the job is not suspended for this one.
  if (partition_of(cluster, victim).priority_tier >= cluster.partition(partition).tier()) {
    return std::nullopt;
  }
  return victim.select.exempt_until;
}

}  // namespace

bool kind_may_take(const Cluster& cluster, const Job& preemptor, PartitionIndex partition,
                   const Job& victim) {
  const PreemptMode mode = effective_mode(cluster, victim);
  if (mode == PreemptMode::kOff) return false;
  const int its_tier = partition_of(cluster, victim).priority_tier;
  switch (cluster.parameters().preempt_type) {
    case PreemptType::kNone:
      return false;
    case PreemptType::kPartitionPriority:
      return its_tier < cluster.partition(partition).tier();
    case PreemptType::kQos: {
      // A job without a QOS neither preempts nor is preempted.
      const auto mine = cluster.find_qos(preemptor.request->qos);
      const auto its = cluster.find_qos(victim.request->qos);
      if (!mine || !its) return false;
      // The gang cannot suspend a job of a higher tier (C10).
      if (mode == PreemptMode::kSuspend && its_tier > cluster.partition(partition).tier()) {
        return false;
      }
      // Within one QOS only WITHIN allows it.
      if (*mine != *its) return cluster.qos_may_preempt(*mine, *its);
      return cluster.parameters().preempt_within || cluster.qos(*mine).preempt_within;
    }
  }
  return false;
}

// 7.2. A question about two jobs alone: exempt times, exempt priorities and nodes are candidates()'
// business.
bool may_take(const Cluster& cluster, const Job& preemptor, PartitionIndex partition,
              const Job& victim) {
  if (!kind_may_take(cluster, preemptor, partition, victim)) return false;
  if (cluster.parameters().preempt_type == PreemptType::kPartitionPriority) {
    // An equal priority is enough here with PRIORITY, and is not enough between QOS (7.2).
    const bool by_priority = cluster.parameters().preempt_priority ||
                             cluster.partition(partition).config.preempt_priority;
    return !by_priority || preemptor.priority >= priority_of(victim);
  }
  const auto mine = cluster.find_qos(preemptor.request->qos);
  // Within one QOS only a job of a truly higher priority: otherwise two equal jobs could preempt
  // each other in turn.
  const bool by_priority = mine == cluster.find_qos(victim.request->qos) ||
                           cluster.parameters().preempt_priority ||
                           cluster.qos(*mine).preempt_priority;
  return !by_priority || preemptor.priority > priority_of(victim);
}

// 7.3 step 5: the first QOS that sets one, in the order in which limits count, and else the
// cluster's.
base::Duration exempt_time(const Cluster& cluster, const Job& victim) {
  const QosOrder order = qos_order(cluster, victim.request->qos, *victim.partition);
  const QosConfig* const qos = qos_with(order, &QosConfig::preempt_exempt_time);
  if (qos != nullptr) return *qos->preempt_exempt_time;
  return cluster.parameters().preempt_exempt_time.value_or(base::Duration{0});
}

// 7.8 step 1: the QOS's under preempt/qos, the partition's otherwise.
base::Duration grace_time(const Cluster& cluster, const Job& victim) {
  if (cluster.parameters().preempt_type == PreemptType::kQos) {
    const QosConfig* const qos = qos_named(cluster, victim.request->qos);
    return qos != nullptr ? qos->grace_time : base::Duration{0};
  }
  return partition_of(cluster, victim).grace_time;
}

// 7.3 and 7.4. `valid_until` is when the first job stops being exempt: until then, and without
// another event, the list stays what it is. Cost: O(allocated jobs × their nodes).
CandidateList candidates(const Cluster& cluster, const std::vector<const Job*>& allocated,
                         const Job& preemptor, PartitionIndex partition, base::Instant now,
                         const Licenses* missing) {
  CandidateList list;
  const PreemptParameters& parameters = cluster.parameters().preempt;
  const NodeSet& nodes = cluster.partition(partition).nodes;
  std::vector<std::pair<std::tuple<std::int64_t, std::int64_t>, Candidate>> keyed;
  for (const Job* victim : allocated) {
    // It gives its nodes back anyway, and a second ending would change nothing.
    if (victim->completing()) continue;
    // This one is not a candidate, or not only: the selector itself leaves out its cores until
    // then, so the answer may change at that instant too.
    const auto shielded = shielded_until(cluster, partition, *victim);
    if (shielded && now < *shielded) list.valid_until = std::min(list.valid_until, *shielded);
    if (!may_take(cluster, preemptor, partition, *victim)) continue;
    if (parameters.min_exempt_priority && priority_of(*victim) > *parameters.min_exempt_priority) {
      continue;
    }
    // Wall time since the start, suspended time included (7.3 step 5). A job that is not ready yet
    // has no start time; it counts from its allocation.
    base::Instant started = victim->start_time.value_or(victim->allocated_at);
    if (cluster.parameters().recorded_clock) started = whole_second(cluster.parameters(), started);
    const base::Instant exempt_until = started + exempt_time(cluster, *victim);
    if (now < exempt_until) {
      list.valid_until = std::min(list.valid_until, exempt_until);
      continue;
    }
    const bool has_missing =
        missing != nullptr && std::ranges::any_of(*missing, [&](const auto& license) {
          return licenses_of(victim->request->licenses, license.first) > 0;
        });
    if (!has_missing && !shares_a_node(cluster, *victim, nodes)) continue;
    const std::int64_t key =
        parameters.youngest_first ? -base::micros_since_epoch(started) : standing(cluster, *victim);
    // The table order breaks ties: Slurm's sort leaves them open, and equal inputs must decide
    // alike (7.4).
    keyed.push_back(
        {{key, victim->table_order}, {&victim->select, effective_mode(cluster, *victim)}});
  }
  std::sort(keyed.begin(), keyed.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, candidate] : keyed) list.candidates.push_back(candidate);
  return list;
}

}  // namespace sched::preempt
