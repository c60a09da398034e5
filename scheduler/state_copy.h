// StateCopy: what a scheduler knows at an instant, for another one that goes on from there on its
// own (forecast/forecast.h). It shares nothing that changes, so it may go to another thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/job_facts.h"
#include "scheduler/model/config.h"
#include "scheduler/model/node.h"
#include "scheduler/plan.h"
#include "scheduler/priority/usage_state.h"

namespace sched {

struct StateCopy {
  base::Instant now{};
  std::shared_ptr<const Configuration> configuration;  // the caller's: the last Configure
  std::vector<NodeSpec> nodes;                         // by NodeIndex; without a name: none
  std::vector<std::string> partitions;                 // names, by PartitionIndex
  std::vector<JobFacts> jobs;                          // in job-table order
  std::vector<NodePlan> published;                     // as taken last
  UsageState usage;                                    // `as_of` 0: none is counted
};

}  // namespace sched
