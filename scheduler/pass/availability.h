// Availability: the nodes that a pass may still give away, and to which job (3.4 step 2, P14). At
// first these are all nodes that are up. They become fewer when a job that cannot start withholds
// nodes from the jobs behind it. Claims are those of NodeCalendar.
//
// A value for one pass.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/node_calendar.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class Availability {
 public:
  // The arguments must outlive this object. `up`: nodes that are up and not drained.
  Availability(const Cluster& cluster, const NodeSet& up, const JobBooks& books, base::Instant now);

  // A claim was made, or its job has started.
  void claims_changed() { calendar_.reset(); }
  // No job behind gets these nodes, or those of the partition.
  void withhold(NodeSet nodes) { withheld_.push_back(std::move(nodes)); }
  void withhold(PartitionIndex partition) { failed_.push_back(partition); }

  // The nodes that a job gets to see in one partition. Valid until the next call of any function.
  struct View {
    const NodeSet& nodes;  // of all partitions; `up` itself if nothing is withheld or claimed
    int in_partition;      // how many of them are the partition's
    // Those that others have claimed for any time: no victims end for nodes on which the job would
    // have to be over soon. Null = there are none.
    const NodeSet* claimed = nullptr;
  };
  // Cost: O(nodes / 64) after a change, otherwise O(1 + claims × nodes / 64).
  // `length`: nodes that are claimed from later on are for jobs that are over by then. Those of the
  // job's request, its user and its refused starts are Placement::open_nodes().
  View view(const Job& job, PartitionIndex partition, std::optional<base::Duration> length);

 private:
  const NodeSet& open_nodes();

  const Cluster& cluster_;
  const NodeSet& up_;
  const JobBooks& books_;
  const base::Instant now_;
  // Withheld since the last view: a pass often ends with the job because of which they are.
  std::vector<NodeSet> withheld_;
  std::vector<PartitionIndex> failed_;
  std::optional<NodeSet> nodes_;              // once something is withheld
  std::optional<NodeCalendar> calendar_;      // of claims, once a job is asked about
  std::vector<std::optional<int>> count_in_;  // of nodes_, by PartitionIndex
  NodeSet with_claims_, claimed_;             // of the last view
};

}  // namespace sched
