#include "scheduler/queue/partition_gates.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "scheduler/limits/job_limits.h"
#include "scheduler/model/asked_product.h"
#include "scheduler/model/memory_asked.h"
#include "scheduler/model/qos_order.h"
#include "scheduler/place/node_counts.h"
#include "scheduler/priority/billing.h"

namespace sched {

// A partition that does not exist is left out; a name that stands twice counts once.
std::vector<PartitionIndex> partitions_of(const Cluster& cluster, const JobRequest& request) {
  std::vector<PartitionIndex> partitions;
  if (request.partitions.empty()) {
    if (const auto index = cluster.default_partition()) partitions.push_back(*index);
  }
  for (const std::string& name : request.partitions) {
    const auto index = cluster.find_partition(name);
    if (!index || std::ranges::find(partitions, *index) != partitions.end()) continue;
    partitions.push_back(*index);
  }
  return partitions;
}

namespace {

// The input of the gates: one job in one of its partitions. A gate returns why the job must not
// enter the partition's queue, or nullopt. No gate looks at nodes that are free or at other jobs,
// so the answer holds until the job, the configuration or the nodes themselves change.
struct Entry {
  const Cluster& cluster;
  const JobRequest& request;
  PartitionIndex partition;
  const PartitionConfig& config;
  const QosConfig* qos;  // the job's; null = none, or it does not exist
  QosOrder order;
  NodeCounts counts;

  std::string where() const { return "partition " + config.name; }
};

bool named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Rounded up, so that a limit which is asked for never looks smaller than it is.
std::string minutes(base::Duration time) {
  return std::to_string(std::chrono::ceil<std::chrono::minutes>(time).count()) + " minutes";
}

// First of all gates: the others look at the QOS.
std::optional<Refusal> qos_exists(const Entry& entry) {
  if (entry.request.qos.empty() || entry.qos != nullptr) return std::nullopt;
  return Refusal{Reason::kInvalidQos, "there is no QOS " + entry.request.qos};
}

// A draining partition takes no new jobs, but those that it has may start (1.2.1).
std::optional<Refusal> state_allows(const Entry& entry) {
  switch (entry.config.state) {
    case PartitionState::kDown:
      return Refusal{Reason::kPartitionDown, entry.where() + " is down"};
    case PartitionState::kInactive:
      return Refusal{Reason::kPartitionInactive, entry.where() + " is inactive"};
    case PartitionState::kUp:
    case PartitionState::kDrain:
      return std::nullopt;
  }
  return std::nullopt;
}

// A list of allowed users makes the list of denied ones void, and likewise for QOS.
std::optional<Refusal> open_to_user(const Entry& entry) {
  const PartitionConfig& config = entry.config;
  const std::string& user = entry.request.user;
  const bool refused = config.allow_users ? !named(*config.allow_users, user)
                                          : config.deny_users && named(*config.deny_users, user);
  if (!refused) return std::nullopt;
  return Refusal{Reason::kPartitionConfig, entry.where() + " is not open to " + user};
}

// A partition that lists QOS is closed to jobs without one.
std::optional<Refusal> open_to_qos(const Entry& entry) {
  const PartitionConfig& config = entry.config;
  const std::string& qos = entry.request.qos;
  const bool refused = config.allow_qos ? !named(*config.allow_qos, qos)
                                        : config.deny_qos && named(*config.deny_qos, qos);
  if (!refused) return std::nullopt;
  return Refusal{Reason::kQosNotAllowed, entry.where() + " is not open to " +
                                             (qos.empty() ? "jobs without a QOS" : "QOS " + qos)};
}

// Only a least time limit must be allowed, if there is one: the backfill may cut the limit to it.
std::optional<Refusal> partition_time_limit(const Entry& entry) {
  const JobRequest& request = entry.request;
  const bool waived = entry.qos != nullptr && entry.qos->partition_time_limit;
  if (!entry.config.max_time || !request.time_limit || waived) return std::nullopt;
  const base::Duration asked = request.time_min.value_or(*request.time_limit);
  if (asked <= *entry.config.max_time) return std::nullopt;
  return Refusal{Reason::kPartitionTimeLimit, "asks for " + minutes(asked) + "; " + entry.where() +
                                                  " allows " + minutes(*entry.config.max_time)};
}

// A job gets all nodes that it names, so it has as many at least, whatever its number of nodes
// says.
int required_count(const Entry& entry) {
  return static_cast<int>(entry.request.required_nodes.size());
}

// 9.1: limits on the job alone (MaxTRES, MaxWall, MinTRES) of QOS, user and accounts. Other jobs do
// not matter, so it is known before a pass. Without QOS and accounts there is no limit to look up,
// and each admission saves the counting.
std::optional<Refusal> limits_on_each_job(const Entry& entry) {
  const LimitScope scope{
      .cluster = entry.cluster,
      .qos = entry.order,
      .association = entry.cluster.accounts().find_user(entry.request.user, entry.request.account)};
  if (scope.is_empty()) return std::nullopt;
  TresCounts asked = requested(entry.cluster, entry.request, entry.partition);
  asked[Tres::kNode] = std::max<std::int64_t>(asked[Tres::kNode], required_count(entry));
  asked[Tres::kBilling] = billing_milli(entry.cluster, entry.partition, asked) / 1000;
  auto hit = over_job_limits(scope, asked, entry.request.time_limit);
  if (!hit) return std::nullopt;
  return Refusal{hit->reason, std::move(hit->message)};
}

// A range that reaches beyond MaxNodes is refused too, though its lower end fits. Three ways to ask
// for what the partition never gives: more nodes at least than its most, more nodes by name, or a
// range such as 2 to 9 where it allows 4. The message names the largest of these numbers.
std::optional<Refusal> partition_nodes(const Entry& entry) {
  const PartitionConfig& config = entry.config;
  const JobRequest& request = entry.request;
  const int required = required_count(entry);
  const bool waived = entry.qos != nullptr && entry.qos->partition_max_nodes;
  const bool reaches_beyond = config.max_nodes && request.nodes_given && request.max_nodes &&
                              !waived && *request.max_nodes > *config.max_nodes;
  const NodeCounts& counts = entry.counts;
  if (counts.max >= counts.min && required <= counts.max && !reaches_beyond) return std::nullopt;
  const int most =
      std::max({counts.min, required, request.nodes_given ? request.max_nodes.value_or(0) : 0});
  return Refusal{Reason::kPartitionNodeLimit,
                 "asks for " + std::to_string(most) + " nodes; " + entry.where() + " allows " +
                     std::to_string(std::max(1, config.min_nodes)) + " to " +
                     std::to_string(config.max_nodes.value_or(counts.max))};
}

// More CPUs than all nodes of the partition have together, up or down, are never there (2.4,
// recorded). The job waits for another node or another partition, and blocks no other job.
std::optional<Refusal> partition_cpus(const Entry& entry) {
  const JobRequest& request = entry.request;
  const std::int64_t most = entry.cluster.partition(entry.partition).cpus_count;
  const std::int64_t asked =
      std::int64_t{tasks_of(request, request.min_nodes)} * request.cpus_per_task;
  if (request.overcommit || asked <= most) return std::nullopt;
  return Refusal{Reason::kPartitionConfig, "asks for " + std::to_string(asked) + " CPUs; " +
                                               entry.where() + " has " + std::to_string(most)};
}

// 1.8 item 5: what some node of the job must give, however its tasks are spread.
// For example, 10 tasks of 2 CPUs with 100 MiB for each CPU, on 4 nodes at most: some node runs 3
// tasks, so it gives 600 MiB. Without a request and without defaults it is 0: all memory of a node
// is within any limit.
MemoryMiB least_memory_per_node(const JobRequest& request, const MemoryRequest& memory,
                                const NodeCounts& counts) {
  if (const auto* per_node = std::get_if<MemoryPerNode>(&memory)) return per_node->amount;
  const auto* per_cpu = std::get_if<MemoryPerCpu>(&memory);
  if (per_cpu == nullptr) return MemoryMiB{0};
  std::int64_t tasks = request.tasks_per_node.value_or(1);
  if (request.tasks) {
    // Even if its tasks are spread over the most nodes that it may have, some node runs this many.
    tasks = std::max<std::int64_t>(tasks, quotient_up(*request.tasks, counts.max));
  }
  if (request.overcommit) tasks = 1;
  const std::int64_t cpus =
      std::max<std::int64_t>(tasks * request.cpus_per_task, request.min_cpus_per_node.value_or(1));
  return MemoryMiB{asked_amount(per_cpu->amount.value(), cpus)};
}

// The partition's own limit counts instead of the cluster's, also if it is higher (1.8).
std::optional<Refusal> memory_per_node(const Entry& entry) {
  const PartitionConfig& config = entry.config;
  const ClusterParameters& parameters = entry.cluster.parameters();
  const bool own = config.max_memory.per_cpu || config.max_memory.per_node;
  // Only the limit per node refuses. Above one per CPU the job gets more CPUs instead (1.8 item 6).
  const MemoryLimit& limit = own ? config.max_memory : parameters.max_memory;
  if (!limit.per_node) return std::nullopt;
  const MemoryMiB memory = least_memory_per_node(
      entry.request,
      memory_asked(entry.request.memory, config.default_memory, parameters.default_memory),
      entry.counts);
  if (memory <= *limit.per_node) return std::nullopt;
  return Refusal{Reason::kMaxMemPerLimit, "asks for " + to_string(memory) + " MiB per node; " +
                                              entry.where() + " allows " +
                                              to_string(*limit.per_node)};
}

// The gates, in the order in which their reasons count: a job for which several gates are closed
// shows the first. Gates that an administrator has closed come before those at which the job asks
// for too much, because no smaller request would help against it.
using Gate = std::optional<Refusal> (*)(const Entry& entry);
constexpr Gate kGates[] = {
    qos_exists,         state_allows,    open_to_user,    open_to_qos,    partition_time_limit,
    limits_on_each_job, partition_nodes, memory_per_node, partition_cpus,
};

}  // namespace

// The first gate that refuses gives the reason; the others are not asked. Facts that several gates
// look at are worked out once.
std::optional<Refusal> refused_by_partition(const Cluster& cluster, const JobRequest& request,
                                            PartitionIndex partition) {
  const QosConfig* const qos = qos_named(cluster, request.qos);
  const Entry entry{.cluster = cluster,
                    .request = request,
                    .partition = partition,
                    .config = cluster.partition(partition).config,
                    .qos = qos,
                    .order = qos_order(cluster, qos, partition),
                    .counts = node_counts(cluster, request, partition)};
  for (const Gate gate : kGates) {
    if (auto refusal = gate(entry)) return refusal;
  }
  return std::nullopt;
}

}  // namespace sched
