// Cluster: the nodes in their natural order, the partitions resolved to node sets, and the QOS. It
// knows what exists and how it is configured; JobBooks and the selectors know what jobs hold.
//
// NodeIndex is stable while a node exists and may be reused afterwards. A *rank* is a node's
// position in the natural sort of the names, and changes when a node comes or goes: code that keeps
// ranks (a NodeSet) builds them again when topology_version() has changed. The scheduler does this
// for the selectors: it makes new ones and adds all allocated jobs again.
//
// After the last of a series of changes call settle(); ranks, order and node sets are valid only
// then.
//
// A node's memory, disk, pods, features and state, all that it has for jobs beside its hardware,
// change all the time: that does not change the topology. It is noted in take_changed_nodes(), and
// structures that depend on it look at that node alone.
//
// Threads: none. Cost: reading is O(1), by a name O(log nodes); upsert_node and remove_node O(log
// nodes), configure O(partitions + QOS); settle O(nodes × (partitions + log nodes)) when the
// topology changed, else O(1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/model/account_tree.h"
#include "scheduler/model/config.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/node.h"
#include "scheduler/model/node_set.h"

namespace sched {

// A partition in force.
struct Partition {
  PartitionConfig config;
  int order = 0;  // position in the configuration; breaks ties between equal tiers
  // 1.2.2: EXCLUSIVE 0, NO 1, YES:n n, FORCE:n n; `force` for FORCE, also with n = 1.
  int max_share = 1;
  bool force = false;
  NodeSet nodes;                        // those that exist
  std::vector<NodeIndex> nodes_ranked;  // the same, in node order
  std::int64_t cpus_count = 0;          // of all of them, in whatever state
  int tier() const { return config.priority_tier; }
};

class Cluster {
 public:
  // Takes the configuration over. Partitions and QOS keep their index as long as their name exists.
  void configure(const Configuration& configuration);
  // Adds the node or changes it. Refuses a node without CPUs or with more than kCoresPerNodeMax
  // cores.
  base::Status upsert_node(const NodeSpec& spec);
  // Returns false if there is no such node.
  bool remove_node(std::string_view name);
  // Works out ranks and node sets again where a change made it necessary.
  void settle();

  // --- nodes ---
  int node_count() const { return static_cast<int>(order_.size()); }
  // All indexes are below this; some may be vacant.
  int node_slots() const { return static_cast<int>(nodes_.size()); }
  std::optional<NodeIndex> find_node(std::string_view name) const;
  // REQUIRES: the node exists, here and below.
  const NodeSpec& node(NodeIndex index) const { return nodes_[index.index()]; }
  int rank(NodeIndex index) const { return ranks_[index.index()]; }
  bool exists(NodeIndex index) const {
    return index.index() < ranks_.size() && ranks_[index.index()] >= 0;
  }
  // By rank. order()[r] is the node of rank r.
  const std::vector<NodeIndex>& order() const { return order_; }
  NodeIndex node_at(int rank) const { return order_[static_cast<std::size_t>(rank)]; }
  const NodeSpec& spec_at(int rank) const { return node(node_at(rank)); }
  NodeSet no_nodes() const { return NodeSet{node_count()}; }
  // Returns the ranks of the names that exist.
  NodeSet named(const std::vector<std::string>& names) const;
  // Changes when a rank, a partition's nodes, the order of partitions or a node's hardware
  // (sockets, cores, threads, CPUs) or weight may have changed.
  std::uint64_t topology_version() const { return topology_version_; }
  // Returns true if upsert_node(spec) would change the topology: a new node, or one with other
  // hardware.
  bool changes_topology(const NodeSpec& spec) const;
  // Changes with the topology and with every configure().
  std::uint64_t configuration_version() const { return configuration_version_ + topology_version_; }
  // Returns nodes that were reported again since the last call, without a change of topology; a
  // node may be named twice, and may no longer exist.
  std::vector<NodeIndex> take_changed_nodes() { return std::exchange(changed_nodes_, {}); }
  // Returns true if there is something to settle or to take.
  bool has_changes() const { return !settled_ || !changed_nodes_.empty(); }

  // --- configuration ---
  const ClusterParameters& parameters() const { return parameters_; }
  // Partitions in force, in the order of the configuration.
  const std::vector<PartitionIndex>& partitions() const { return partition_order_; }
  int partition_slots() const { return static_cast<int>(partitions_.size()); }
  std::optional<PartitionIndex> find_partition(std::string_view name) const;
  // Returns the same, and a removed one for a name without partition.
  PartitionIndex known_partition(const std::string& name);
  std::optional<PartitionIndex> default_partition() const { return default_partition_; }
  bool exists(PartitionIndex index) const {
    return index.index() < partitions_.size() && partitions_[index.index()].order >= 0;
  }
  // Also of a partition that was removed (its last configuration, without nodes): its jobs run on.
  const Partition& partition(PartitionIndex index) const { return partitions_[index.index()]; }

  const std::vector<QosConfig>& qos() const { return qos_; }
  std::optional<QosIndex> find_qos(std::string_view name) const;  // nothing for "": that is none
  const QosConfig& qos(QosIndex index) const { return qos_[index.index()]; }
  // Returns true if a job of QOS a may take a job of QOS b: `preempt` of a names b (7.2).
  bool qos_may_preempt(QosIndex a, QosIndex b) const;
  const AccountTree& accounts() const { return accounts_; }
  // Returns the kinds that limits and weights may be on, in Slurm's order: each Tres, and then the
  // types of GPUs that a limit or a weight names.
  const std::vector<TresKind>& tres_kinds() const { return tres_kinds_; }

 private:
  void resolve(Partition& partition) const;

  ClusterParameters parameters_;
  std::vector<NodeSpec> nodes_;  // by NodeIndex
  // Likewise; -1 = vacant. Apart from the nodes, because what jobs hold is looked up by rank all
  // the time, and a description takes several cache lines.
  std::vector<int> ranks_;
  std::vector<NodeIndex> order_;
  std::map<std::string, NodeIndex, std::less<>> node_by_name_;
  std::vector<Partition> partitions_;
  std::vector<PartitionIndex> partition_order_;
  std::map<std::string, PartitionIndex, std::less<>> partition_by_name_;
  std::optional<PartitionIndex> default_partition_;
  std::vector<QosConfig> qos_;  // in the order of the configuration
  AccountTree accounts_;
  std::vector<TresKind> tres_kinds_;
  std::vector<NodeIndex> vacant_;
  bool settled_ = true;
  std::uint64_t topology_version_ = 1;
  std::uint64_t configuration_version_ = 1;
  std::vector<NodeIndex> changed_nodes_;
};

}  // namespace sched
