// PassWorld: the parts that a pass works with, without the engine: nodes a to d of 4 CPUs, whole
// nodes, one job each. Jobs that a pass starts run at once; victims stay until the test ends them.
//
// A set of nodes is written as the letters of their names, and what a pass did as one word or more
// for each job that was pending: "1 runs ab, 2 Resources, 3 Priority, 4 preempts on a".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/limits/resource_limits.h"
#include "scheduler/pass/main_pass.h"
#include "scheduler/priority/usage.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {

class PassWorld : public PassActions {
 public:
  // Returns a configuration with partition p of all nodes.
  static Configuration one_partition();
  // Returns the nodes with these names, for partitions.
  static std::vector<NodeSpec> nodes_named(const std::string& letters);
  // Returns a partition of whole nodes that jobs have to themselves.
  static PartitionConfig closed(const std::string& name, const std::string& letters, int tier = 1);

  explicit PassWorld(const Configuration& configuration = one_partition());

  // Jobs of lower numbers go first unless they name a priority. The one without a partition is for
  // the first.
  Job& submit(const JobRequest& request, base::Instant now = at(0));
  Job& submit(std::int64_t id, int nodes_count, const std::string& partition = {}) {
    return submit(job(id, nodes_count, partition));
  }
  // The job has run on these nodes since `since`.
  Job& run(std::int64_t id, const std::string& letters, const std::string& partition = {},
           base::Instant since = at(0));
  void end(std::int64_t id) { books.end(*books.find(JobId{id}), JobState::kCompleted); }
  void set_state(const std::string& node, NodeState state);

  PartitionIndex in(const std::string& partition) const {
    return cluster.find_partition(partition).value();
  }
  std::string letters(const Allocation& allocation) const;
  // Makes a pass, `pass.run(now, depth)`, and returns what it did.
  std::string after_pass(base::Instant now, std::optional<int> depth = std::nullopt);
  // Returns a line of all jobs that wait or were started since the last look.
  std::string look();

  // --- PassActions ---
  Job& start(Job& job, PartitionIndex partition, Fits fits) override;
  void preempt_for(Job& job, NeedsVictims needs) override;

  base::Instant now{};
  Cluster cluster;
  NodeGroups groups{cluster};
  JobBooks books{cluster};
  UsageLedger usage{cluster};
  ResourceLimits limits{cluster, books, usage};
  Admission admission{cluster, books, /*wakes=*/true};
  MainPass pass{cluster, groups, books, limits, admission, *this};
  bool more = false;  // what the last pass returned

 private:
  std::map<JobId, std::string> did_;
};

}  // namespace sched::testing
