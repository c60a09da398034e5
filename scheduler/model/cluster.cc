#include "scheduler/model/cluster.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/natural_order.h"
#include "scheduler/model/core_set.h"

namespace sched {
namespace {

// Returns how many jobs may be on one unit (0 = whole nodes alone), and whether they are forced to
// share (1.2.2). FORCE:1 is not the same as NO: neither stacks by itself, but FORCE:1 lets
// preemption stack one job on another.
std::pair<int, bool> encode_sharing(const PartitionConfig& config) {
  switch (config.over_subscribe) {
    case OverSubscribe::kExclusive:
      return {0, false};
    case OverSubscribe::kNo:
      return {1, false};
    case OverSubscribe::kYes:
      return {std::max(1, config.max_share), false};
    case OverSubscribe::kForce:
      return {std::max(1, config.max_share), true};
  }
  return {1, false};
}

// The bound on cores is that of CoreSet, a fixed number of bits.
base::Status valid_shape(const NodeSpec& spec) {
  if (spec.sockets < 1 || spec.cores_per_socket < 1 || spec.threads_per_core < 1 || spec.cpus < 1) {
    return base::invalid_argument("node " + spec.name + ": has no CPUs");
  }
  if (spec.cores() > kCoresPerNodeMax) {
    return base::invalid_argument("node " + spec.name + ": has " + std::to_string(spec.cores()) +
                                  " cores, at most " + std::to_string(kCoresPerNodeMax) +
                                  " are supported");
  }
  return {};
}

// Returns each Tres, and then the types of GPUs that any of these names.
std::vector<TresKind> tres_kinds_of(const Configuration& configuration,
                                    const AccountTree& accounts) {
  std::set<std::string> types;
  const auto name_types = [&types](const auto& values) {
    for (const auto& [type, value] : values.of_gpu_type) types.insert(type);
  };
  const auto look_at = [&](const Limits& limits) {
    for (const TresLimits* const each :
         {&limits.group_tres, &limits.job_tres, &limits.node_tres, &limits.min_tres,
          &limits.user_tres, &limits.account_tres}) {
      name_types(*each);
    }
  };
  for (const QosConfig& qos : configuration.qos) look_at(qos.limits);
  for (const Association& association : accounts.all()) look_at(association.limits);
  for (const PartitionConfig& partition : configuration.partitions) {
    if (partition.billing_weights_micro) name_types(*partition.billing_weights_micro);
  }
  name_types(configuration.cluster.priority.weight_tres);
  std::vector<TresKind> kinds;
  for (const Tres tres : kAllTres) kinds.push_back({.tres = tres});
  for (const std::string& type : types) kinds.push_back({.tres = Tres::kGpu, .gpu_type = type});
  return kinds;
}

}  // namespace

// May be called while jobs run: what their allocations name stays valid.
// A partition keeps its index forever, because allocations name it: one that is removed keeps its
// place with order −1, and one of the same name that comes back gets it again.
void Cluster::configure(const Configuration& configuration) {
  parameters_ = configuration.cluster;
  qos_ = configuration.qos;
  accounts_ = AccountTree{configuration.accounts, configuration.users};
  tres_kinds_ = tres_kinds_of(configuration, accounts_);
  for (Partition& partition : partitions_) partition.order = -1;
  partition_order_.clear();
  default_partition_.reset();
  for (const PartitionConfig& config : configuration.partitions) {
    auto [at, is_new] = partition_by_name_.try_emplace(
        config.name, PartitionIndex{static_cast<std::int32_t>(partitions_.size())});
    if (is_new) partitions_.emplace_back();
    Partition& partition = partitions_[at->second.index()];
    partition.config = config;
    partition.order = static_cast<int>(partition_order_.size());
    std::tie(partition.max_share, partition.force) = encode_sharing(config);
    partition_order_.push_back(at->second);
    if (config.is_default && !default_partition_) default_partition_ = at->second;
  }
  settled_ = false;
  ++configuration_version_;
}

// Returns true if the books must be built again for this node: it is new, or has other hardware.
bool Cluster::changes_topology(const NodeSpec& spec) const {
  const auto known = find_node(spec.name);
  return !known || !same_hardware(node(*known), spec);
}

// The index of a node that was removed is given to the next new one, so that indexes stay dense.
// Jobs of the removed node are gone by then (NodeRemove).
base::Status Cluster::upsert_node(const NodeSpec& spec) {
  if (base::Status status = valid_shape(spec); !status.ok()) return status;
  if (const auto known = find_node(spec.name)) {
    NodeSpec& old = nodes_[known->index()];
    if (same_hardware(old, spec)) {
      changed_nodes_.push_back(*known);
    } else {
      // Other cores, threads, CPUs or weight: what was worked out by rank from them is wrong now.
      // Names are unchanged, so ranks are too, but groups and books must be built again.
      ++topology_version_;
    }
    old = spec;
    return {};
  }
  NodeIndex index{static_cast<std::int32_t>(nodes_.size())};
  if (vacant_.empty()) {
    nodes_.emplace_back();
    ranks_.push_back(-1);
  } else {
    index = vacant_.back();
    vacant_.pop_back();
  }
  // Without a rank until settle(), which sorts the names of all nodes once, however many came.
  nodes_[index.index()] = spec;
  node_by_name_.emplace(spec.name, index);
  settled_ = false;
  return {};
}

// Ranks are renumbered by the next settle().
bool Cluster::remove_node(std::string_view name) {
  const auto at = node_by_name_.find(name);
  if (at == node_by_name_.end()) return false;
  vacant_.push_back(at->second);
  // The slot stays, so that other nodes keep their indexes.
  nodes_[at->second.index()] = NodeSpec{};
  ranks_[at->second.index()] = -1;
  node_by_name_.erase(at);
  settled_ = false;
  return true;
}

// Ranks are the order of the nodes' names, "n2" before "n10". They stand for the order of Slurm's
// configuration file, on which runs of neighbors depend (4.4.4). Cost: O(nodes × log nodes) if
// nodes came or went or the configuration changed, otherwise O(1). An index names a node for as
// long as it exists, and a rank says where it stands now: nodes that came as n2, n10 and n1 have
// the indexes 0, 1 and 2, and the ranks 1, 2 and 0. Allocations hold indexes; sets of nodes are by
// rank, and must be made again when ranks change (topology_version_).
void Cluster::settle() {
  if (settled_) return;
  settled_ = true;
  order_.clear();
  for (const auto& [name, index] : node_by_name_) order_.push_back(index);
  std::sort(order_.begin(), order_.end(), [this](NodeIndex a, NodeIndex b) {
    return base::natural_less(node(a).name, node(b).name);
  });
  for (std::size_t rank = 0; rank < order_.size(); ++rank) {
    ranks_[order_[rank].index()] = static_cast<int>(rank);
  }
  for (Partition& partition : partitions_) resolve(partition);
  ++topology_version_;
}

// nullopt for a name that is not a node now; indexes of removed nodes are given away again.
std::optional<NodeIndex> Cluster::find_node(std::string_view name) const {
  const auto at = node_by_name_.find(name);
  if (at == node_by_name_.end()) return std::nullopt;
  return at->second;
}

// Names that do not exist are left out; the caller compares counts if that matters.
NodeSet Cluster::named(const std::vector<std::string>& names) const {
  NodeSet set = no_nodes();
  for (const std::string& name : names) {
    if (const auto index = find_node(name)) set.set(rank(*index));
  }
  return set;
}

// For a job that is restored and whose partition has been deleted: it needs an index all the same.
PartitionIndex Cluster::known_partition(const std::string& name) {
  const auto [at, is_new] = partition_by_name_.try_emplace(
      name, PartitionIndex{static_cast<std::int32_t>(partitions_.size())});
  if (is_new) {
    Partition& removed = partitions_.emplace_back();
    removed.config.name = name;
    removed.order = -1;
    settled_ = false;
  }
  return at->second;
}

// nullopt also for one that was removed: it keeps its index, but no job may be sent there.
std::optional<PartitionIndex> Cluster::find_partition(std::string_view name) const {
  const auto at = partition_by_name_.find(name);
  if (at == partition_by_name_.end() || !exists(at->second)) return std::nullopt;
  return at->second;
}

// An empty name stands for "no QOS", also if a QOS without a name was configured.
std::optional<QosIndex> Cluster::find_qos(std::string_view name) const {
  if (name.empty()) return std::nullopt;
  for (std::size_t i = 0; i < qos_.size(); ++i) {
    if (qos_[i].name == name) return QosIndex{static_cast<std::int32_t>(i)};
  }
  return std::nullopt;
}

// Direct only: to preempt is not transitive (1.4).
bool Cluster::qos_may_preempt(QosIndex a, QosIndex b) const {
  const std::vector<std::string>& names = qos_[a.index()].preempt;
  return std::find(names.begin(), names.end(), qos_[b.index()].name) != names.end();
}

// Names of a partition that do not exist yet are left out, and are found when their node comes. A
// removed partition has no nodes.
void Cluster::resolve(Partition& partition) const {
  partition.nodes = no_nodes();
  partition.nodes_ranked.clear();
  partition.cpus_count = 0;
  if (partition.order < 0) return;
  partition.nodes = named(partition.config.nodes);
  for (int rank = partition.nodes.next(0); rank >= 0; rank = partition.nodes.next(rank + 1)) {
    partition.nodes_ranked.push_back(node_at(rank));
    partition.cpus_count += spec_at(rank).cpus;
  }
}

}  // namespace sched
