// CoreCount: the free cores of some nodes, as jobs leave them. A job that does not fit by this
// count does not fit; that it does promises nothing (memory, sockets and other tasks on a node are
// the selector's to judge). It is one question's, and only where no two jobs share a core.
//
// Threads: none. Cost: the constructor O(nodes), leave() O(nodes of the job), may_fit() O(1).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/backfill/needs.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/model/allocation_nodes.h"
#include "scheduler/model/cluster.h"
#include "scheduler/model/node_set.h"

namespace sched {

class CoreCount {
 public:
  // `free`: by rank, before any job leaves. The other arguments must outlive this object.
  CoreCount(const Cluster& cluster, const std::vector<CoresAndMemory>& free, const NodeSet& nodes,
            const Needs& needs)
      : cluster_{cluster}, nodes_{nodes}, needs_{needs}, free_{free} {
    for (int rank = nodes.next(0); rank >= 0; rank = nodes.next(rank + 1)) {
      const int here = free_[static_cast<std::size_t>(rank)].cores;
      total_ += here;
      if (here >= needed_on(rank)) ++ready_;
    }
  }

  // Takes an allocated job off all its nodes. REQUIRES: it has not left before.
  void leave(const Job& job) {
    if (job.user_suspended) return;  // its cores are free already
    for_each_rank(cluster_, job.allocation, [&](int rank, const NodeAllocation& use) {
      if (!nodes_.test(rank)) return;
      int& here = free_[static_cast<std::size_t>(rank)].cores;
      const int needed = needed_on(rank), cores = use.cores.count();
      // Counted when a node crosses what is needed, once; jobs only leave.
      if (here < needed && here + cores >= needed) ++ready_;
      here += cores;
      total_ += cores;
    });
  }
  bool may_fit() const { return ready_ >= needs_.nodes_min && total_ >= needs_.cores; }

 private:
  int needed_on(int rank) const { return needs_.each.cores_of(cluster_.spec_at(rank)); }

  const Cluster& cluster_;
  const NodeSet& nodes_;
  const Needs& needs_;
  std::vector<CoresAndMemory> free_;  // by rank
  int ready_ = 0;                     // nodes that have what is needed on each
  std::int64_t total_ = 0;            // free cores
};

}  // namespace sched
