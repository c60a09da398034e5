// Availability: the nodes that a pass may still give away, and to which job (3.4 step 2, P14). At
// first these are all nodes that are up. They become fewer when a job that cannot start withholds
// nodes from the jobs behind it. The nodes of a claim are for the preemptor that waits for its
// victims there; a job of a higher tier may have them too, since it might preempt the claimant.
//
// A value for one pass. Reservations belong here: their nodes are for their own jobs only.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Availability {
 public:
  // `up`: nodes that are up and not drained; it must outlive this object.
  Availability(const Cluster& cluster, const NodeSet& up);

  // REQUIRES: the job has a claim, and is in the queue or allocated.
  void add_claim(const Job& job);
  // The same, but only these of its nodes are kept for it.
  void add_claim(const Job& job, NodeSet nodes);
  // The job has started: what is left of its nodes is for others.
  void drop_claim(const Job& job);
  // No job behind gets these nodes, or those of the partition.
  void withhold(NodeSet nodes) { withheld_.push_back(std::move(nodes)); }
  void withhold(PartitionIndex partition) { failed_.push_back(partition); }

  // The nodes that a job gets to see in one partition. Valid until the next call of any function.
  struct View {
    const NodeSet& nodes;  // of all partitions; `up` itself if nothing is withheld or claimed
    int in_partition;      // how many of them are the partition's
  };
  // Cost: O(nodes / 64) after a change, otherwise O(1 + claims × nodes / 64).
  View view(const Job& job, PartitionIndex partition);

 private:
  struct Claim {
    const Job* job;
    int tier;  // the highest in which it waits
    NodeSet nodes;
  };

  const NodeSet& open_nodes();

  const Cluster& cluster_;
  const NodeSet& up_;
  // Withheld since the last view: a pass often ends with the job because of which they are.
  std::vector<NodeSet> withheld_;
  std::vector<PartitionIndex> failed_;
  std::optional<NodeSet> nodes_;  // once something is withheld
  std::vector<Claim> claims_;
  std::vector<std::optional<int>> count_in_;  // of nodes_, by PartitionIndex
  NodeSet with_claims_;                       // of the last view
};

}  // namespace sched
