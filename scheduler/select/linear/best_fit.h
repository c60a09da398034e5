// Best fit over consecutive nodes (4.4.4): the tightest run of neighbors that holds the job.
//
// It is not the chooser of cons_tres (4.8), because what is recorded of the two differs: here large
// nodes are taken wherever they are if only these will do, a run that suffices is left for any
// tighter one, and weights do not affect runs; there runs are cut at weights, one node that
// holds the rest is looked for first, and each node leaves CPUs for those that must follow. Nor
// does it work on an Offer: whole nodes of equal sets need no CPUs per node, sums of runs are
// differences of constant prefix sums (an Offer adds up blocks), and a start on the first empty
// nodes looks at no other node, whereas an offer would be kept for each limit of jobs per node and
// changed with every start.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/model/node_set.h"

namespace sched::linear {

struct BestFitRequest {
  const NodeSet& eligible;
  const NodeSet& required;   // a subset of eligible
  bool any_required = true;  // false: `required` is empty, which then is not looked at
  int min_nodes = 1;
  int req_nodes = 1;
  int max_nodes = 1;
  int min_cpus = 1;
  bool contiguous = false;
};

// CPUs of the nodes by rank, as sums, so that a run's CPUs are a difference.
class CpuSums {
 public:
  CpuSums() = default;
  explicit CpuSums(const std::vector<int>& cpus_by_rank);
  int cpus(int rank) const { return of_run(rank, rank + 1); }
  int of_run(int begin, int end) const {
    return static_cast<int>(sums_[static_cast<std::size_t>(end)] -
                            sums_[static_cast<std::size_t>(begin)]);
  }
  bool uniform() const { return uniform_; }

 private:
  std::vector<long long> sums_{0};
  bool uniform_ = true;
};

// Chooses nodes, by ascending rank, or nothing. Cost: O(nodes / 64 + runs × rounds + chosen).
std::optional<std::vector<int>> best_fit(const CpuSums& cpus, const BestFitRequest& request);

}  // namespace sched::linear
