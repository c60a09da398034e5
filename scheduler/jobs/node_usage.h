// NodeUsage: which jobs are on each node, and the node maps that passes start from (1.3 runtime
// counters, R4.4). Selectors keep their own books of cores and memory; this is the state of whole
// nodes.
//
// Cost: O(nodes of the job) per change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/jobs/job_table.h"
#include "scheduler/model/change_log.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class NodeUsage {
 public:
  explicit NodeUsage(const Cluster& cluster) : cluster_{cluster} {}

  // After a topology change: everything empty; the caller adds all allocated jobs again.
  void reset();

  // The job got its allocation, or all its pods are gone. `add` takes the job's state as it is.
  void add(const Job& job);
  void remove(const Job& job);
  // To be called around a change of what a job counts as (running, suspended, completing):
  // usage.remove(job); change; usage.add(job) keeps the order of jobs_on(), hence these two.
  void before_change(const Job& job) { count(job, -1); }
  void after_change(const Job& job) { count(job, +1); }
  // Nothing of the job is left on these nodes: they are not completing because of it, and have none
  // of its pods. `nodes` ascend; called before Job::clean_nodes has them.
  void leave(const Job& job, const std::vector<NodeIndex>& nodes);
  // An allocated job that is not completing begins to count as running, or ends to.
  void change_running(const Job& job, bool running) { count_running(job, running ? +1 : -1); }

  // Returns the nodes without a running or completing job; suspended ones do not count (R4.4).
  const NodeSet& idle() const { return idle_; }
  // Returns the nodes without a running job that refuses to share.
  const NodeSet& shareable() const { return shareable_; }
  // Returns the nodes on which a job is completing, and has something left: no new job (R2.1).
  const NodeSet& completing() const { return completing_; }
  bool any_completing() const { return completing_count_ > 0; }
  // Returns the nodes that take no more pods (NodeSpec::pods_max); what the others still take.
  const NodeSet& full() const { return full_; }
  bool any_full() const { return full_count_ > 0; }
  std::optional<int> pods_left(NodeIndex node) const;
  // Returns the nodes of which a job holds all memory because it asked for none (R5.3), and that
  // job; null if there is none. For sentences: selectors have the books of memory.
  const NodeSet& memory_taken() const { return memory_taken_; }
  const Job* memory_holder(NodeIndex node) const;
  // The node may take another number of pods.
  void node_changed(NodeIndex node) { show_full(node); }
  // Returns true if restrict_to_user() may take nodes away.
  bool restricts(bool exclusive_user) const { return exclusive_user || owners_count_ > 0; }
  // Returns the ranks at which one of the four sets changed.
  const ChangeLog& log() const { return log_; }
  // Allocated jobs of the node, in the order in which they came; also those that have left it.
  const std::vector<const Job*>& jobs_on(NodeIndex node) const { return nodes_[node.index()].jobs; }
  // Whether the job keeps other users off its nodes, by its own wish or by the partition's (7.9).
  bool owns_nodes(const Job& job, PartitionIndex partition) const;
  // Takes the nodes away that have just refused a start of the job.
  void leave_out_refusing(const Job& job, base::Instant now, NodeSet& nodes) const;
  // R7.30: the nodes that `job` may use as far as users are concerned, out of `nodes`.
  void restrict_to_user(const Job& job, bool exclusive_user, NodeSet& nodes) const;
  // Returns the same for one node, as if `without` (may be null) were not on it.
  bool open_to_user(const Job& job, bool exclusive_user, NodeIndex node, const Job* without) const;

 private:
  struct Counters {
    int running = 0;
    int no_share = 0;
    int completing = 0;
    int pods = 0;
    std::vector<const Job*> jobs;
  };
  void count(const Job& job, int delta);
  void count_running(const Job& job, int delta);
  void count_completing(const Job& job, int delta);
  void count_completing(NodeIndex node, int delta);
  void count_pods(const Job& job, int delta);
  void count_pods(const Job& job, const NodeAllocation& use, int delta);
  void show_full(NodeIndex node);
  bool takes_all_memory(const Job& job) const;
  void show_memory_taken(const Job& job, bool comes);
  void show(NodeSet& set, int rank, bool member);

  const Cluster& cluster_;
  std::vector<Counters> nodes_;  // by NodeIndex
  NodeSet idle_, shareable_, completing_, full_, memory_taken_;
  ChangeLog log_;
  int completing_count_ = 0;  // completing jobs
  int full_count_ = 0;        // members of full_
  int owners_count_ = 0;      // jobs that keep other users off their nodes
};

}  // namespace sched
