#include "scheduler/priority/multifactor.h"

#include <algorithm>
#include <chrono>

#include "scheduler/model/qos_order.h"
#include "scheduler/priority/billing.h"
#include "scheduler/priority/fixed_point.h"
#include "scheduler/priority/priority_range.h"

namespace sched {
namespace {

// Terms are summed in millionths: eight of them, each of a 32-bit weight, are far from overflow.
constexpr std::int64_t kMillion = 1'000'000;

// `normal`: the part of the greatest; else the value itself.
// NO_NORMAL_*: a factor that is not normalized may be far above 1, so it is cut at the greatest
// priority, beyond which it makes no difference.
std::int64_t part_or_value(std::int64_t value, std::int64_t greatest, bool normal) {
  return normal ? ppb(value, greatest) : std::min(value, kPriorityMax) * kBillion;
}

// 0 = without a limit of its own or of the partition.
// Slurm's limits are whole minutes; a part counts as one (1.7).
std::int64_t minutes_of(const JobRequest& request, const PartitionConfig& partition) {
  const auto limit = request.time_limit ? request.time_limit : partition.max_time;
  if (!limit) return 0;
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::minutes>(*limit).count());
}

// Large jobs first: the mean of its parts of all nodes and of all CPUs; with PriorityFavorSmall
// what is missing from the whole. SMALL_RELATIVE_TO_TIME: the greater of the two parts, divided by
// its minutes.
std::int64_t job_size(const Cluster& cluster, const PriorityTotals& totals,
                      const JobRequest& request, PartitionIndex partition,
                      const TresCounts& counts) {
  const PriorityParameters& parameters = cluster.parameters().priority;
  if (totals.nodes_count == 0 || totals.cpus_count == 0) return 0;
  std::int64_t size = 0;
  if (parameters.small_relative_to_time) {
    const std::int64_t minutes = minutes_of(request, cluster.partition(partition).config);
    const std::int64_t part = std::max(ppb(counts[Tres::kCpu], totals.cpus_count),
                                       ppb(counts[Tres::kNode], totals.nodes_count));
    size = minutes == 0 ? 0 : part / minutes;
  } else {
    size = (ppb(counts[Tres::kNode], totals.nodes_count) +
            ppb(counts[Tres::kCpu], totals.cpus_count)) /
           2;
  }
  size = std::min(size, kBillion);
  return parameters.favor_small ? kBillion - size : size;
}

// R9.3: grows from 0 to 1 within PriorityMaxAge, and stays there.
std::int64_t age_factor(const PriorityParameters& parameters, base::Duration waited) {
  if (parameters.weight_age == 0) return 0;
  // PriorityMaxAge=0: every job counts as old.
  if (parameters.max_age.count() <= 0) return kBillion;
  const base::Duration counted = std::clamp(waited, base::Duration{0}, parameters.max_age);
  return static_cast<std::int64_t>(static_cast<double>(counted.count()) /
                                   static_cast<double>(parameters.max_age.count()) * 1e9);
}

// Weight × factor, in millionths. Factors are in billionths (ppb), and above one billion where they
// are not normalized. As a double the product is exact up to 2^53, and then to 16 digits.
std::int64_t term(std::int64_t weight, std::int64_t factor_ppb) {
  // More than the greatest priority counts as infinite; the bound keeps the sum within 64 bits.
  constexpr std::int64_t kMost = (kPriorityMax + 1) * kMillion;
  if (weight == 0 || factor_ppb <= 0) return 0;
  const double millionths = static_cast<double>(weight) * static_cast<double>(factor_ppb) / 1000;
  return millionths < static_cast<double>(kMost) ? static_cast<std::int64_t>(millionths) : kMost;
}

}  // namespace

// Cost: O(nodes × partitions they are in). Nodes that are down count: a factor must not change
// because a node fails.
PriorityTotals::PriorityTotals(const Cluster& cluster) {
  nodes_count = cluster.node_count();
  for (const NodeIndex node : cluster.order()) cpus_count += cluster.node(node).cpus;
  of_partition.resize(static_cast<std::size_t>(cluster.partition_slots()));
  for (const PartitionIndex index : cluster.partitions()) {
    const Partition& partition = cluster.partition(index);
    // The greatest of all partitions, by which a partition's own is divided (R9.3).
    partition_factor_max =
        std::max<std::int64_t>(partition_factor_max, partition.config.priority_job_factor);
    TresCounts& counts = of_partition[index.index()];
    counts[Tres::kNode] = static_cast<std::int64_t>(partition.nodes_ranked.size());
    for (const NodeIndex node : partition.nodes_ranked) {
      counts[Tres::kCpu] += cluster.node(node).cpus;
      counts[Tres::kMemory] += cluster.node(node).memory.value();
      const Devices& devices = cluster.node(node).devices;
      if (devices.empty()) continue;
      for (const TresKind& kind : cluster.tres_kinds()) {
        if (kind.tres == Tres::kGpu) counts[kind] += gpus_of(devices, kind.gpu_type);
      }
    }
    // The bill of a job that had the whole partition.
    counts[Tres::kBilling] = billing_milli(cluster, index, counts) / 1000;
  }
  for (const QosConfig& qos : cluster.qos()) {
    qos_priority_max = std::max<std::int64_t>(qos_priority_max, qos.priority);
  }
  for (const Association& each : cluster.accounts().all()) {
    association_priority_max = std::max<std::int64_t>(association_priority_max, each.priority);
  }
}

// Returns the factors of R9.3, in billionths; above one billion where they are not normalized.
// Those that follow from the size of the job are 0 unless something weighs them.
PriorityFactors priority_factors(const Cluster& cluster, const PriorityTotals& totals,
                                 const JobRequest& request, PartitionIndex partition,
                                 bool was_tested, base::Duration waited,
                                 std::int64_t fair_share_ppb, std::uint32_t association_priority) {
  const PriorityParameters& parameters = cluster.parameters().priority;
  PriorityFactors factors;
  factors.age = age_factor(parameters, waited);
  factors.association =
      part_or_value(association_priority, totals.association_priority_max, parameters.normal_assoc);
  factors.fair_share = fair_share_ppb;
  const bool by_tres = parameters.weight_tres != TresWeights{};
  if (parameters.weight_job_size > 0 || by_tres) {
    // Reading the request costs more than all the rest, so it is left out if no weight needs it.
    TresCounts asked = requested(cluster, request, partition);
    TresCounts size = asked;
    if (was_tested && cluster.parameters().select == SelectType::kLinear) {
      size[Tres::kCpu] = whole_node_cpus(cluster, request, partition, asked[Tres::kCpu]);
    }
    factors.job_size = job_size(cluster, totals, request, partition, size);
    asked[Tres::kBilling] = billing_milli(cluster, partition, asked) / 1000;
    for (const TresKind& kind : cluster.tres_kinds()) {
      factors.tres[kind] = part_or_value(asked[kind], totals.of_partition[partition.index()][kind],
                                         parameters.normal_tres);
    }
  }
  factors.partition = part_or_value(cluster.partition(partition).config.priority_job_factor,
                                    totals.partition_factor_max, parameters.normal_partition);
  if (const QosConfig* const qos = qos_named(cluster, request.qos)) {
    factors.qos = part_or_value(qos->priority, totals.qos_priority_max, parameters.normal_qos);
  }
  return factors;
}

std::int64_t age_term(const PriorityParameters& parameters, base::Duration waited) {
  return term(parameters.weight_age, age_factor(parameters, waited));
}

std::int64_t fair_share_term(const PriorityParameters& parameters, std::int64_t fair_share_ppb) {
  return term(parameters.weight_fair_share, fair_share_ppb);
}

// Returns all terms but age and fair share. They change with the request and the configuration
// only, and are kept with the job from period to period.
std::int64_t other_terms(const PriorityParameters& parameters, const PriorityFactors& factors,
                         std::int32_t nice) {
  std::int64_t sum = term(parameters.weight_assoc, factors.association) +
                     term(parameters.weight_job_size, factors.job_size) +
                     term(parameters.weight_partition, factors.partition) +
                     term(parameters.weight_qos, factors.qos);
  for (const Tres kind : kAllTres) {
    sum += term(parameters.weight_tres[kind], factors.tres[kind]);
  }
  for (const auto& [type, weight] : parameters.weight_tres.of_gpu_type) {
    sum += term(weight, factors.tres[TresKind{Tres::kGpu, type}]);
  }
  return sum - std::int64_t{nice} * kMillion;
}

// The fraction is cut off; the range is 1 to 2^32 − 1, so that a job with a large nice value is
// last but not held (R9.1). A sum that is whole in Slurm, which adds doubles up, is less here by
// what was cut from billionths: 24,000 × (1/4 + 1/24) / 2 is 3,500 there.
Priority priority_of_sum(std::int64_t millionths) {
  constexpr std::int64_t kCut = 1000;
  return clamped_priority((millionths + kCut) / kMillion);
}

Priority weighted_sum(const PriorityParameters& parameters, const PriorityFactors& factors,
                      std::int32_t nice) {
  return priority_of_sum(term(parameters.weight_age, factors.age) +
                         fair_share_term(parameters, factors.fair_share) +
                         other_terms(parameters, factors, nice));
}

}  // namespace sched
