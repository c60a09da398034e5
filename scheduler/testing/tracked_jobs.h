// TrackedJobs: a small cluster with jobs on its nodes, as the engine keeps them, for tests of gang/
// and projection/ that need no engine.
//
// Nodes are single letters, each with two sockets of two cores. A place is written as nodes with
// the cores that are taken there: "ab" = all cores of a and b, "a01c2" = cores 0 and 1 of a and
// core 2 of c.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/gang/gang_lists.h"
#include "scheduler/jobs/job_table.h"
#include "scheduler/jobs/node_usage.h"
#include "scheduler/model/cluster.h"

namespace sched::testing {

class TrackedJobs {
 public:
  // `partitions`: a letter and its tier each, for example "H2 A1 B1". With "!" its jobs are
  // canceled under a shadow ("A1!"), otherwise they are suspended there. Each has all nodes, a to
  // h.
  explicit TrackedJobs(std::string_view partitions, gang::Unit unit = gang::Unit::kCore);

  Configuration configuration;
  Cluster cluster;
  NodeUsage usage{cluster};
  JobTable jobs;

  PartitionIndex partition(char name) const;
  NodeIndex node(char name) const;
  Allocation place(std::string_view text) const;
  // Adds a job that is running and ready there; the gang does not know it yet.
  Job& add(std::int64_t id, char partition_name, std::string_view where);
  Job& job(std::int64_t id) { return *jobs.find(JobId{id}); }
  // Removes the job. REQUIRES: the gang no longer tracks it.
  void erase(std::int64_t id);
};

}  // namespace sched::testing
