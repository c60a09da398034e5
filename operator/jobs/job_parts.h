// JobParts: what all parts that do something about a job work with: Wishes, Decisions, GangRunner,
// PodWrites. Things that only some of them need are constructor parameters of their own.
#pragma once

#include "base/time.h"
#include "operator/jobs/job_book.h"
#include "operator/loop/report.h"
#include "operator/nodes/node_book.h"
#include "operator/policy/policy_book.h"

namespace control {

// All of them must live longer than the part that has them.
struct JobParts {
  const base::Instant& now;  // of the present step
  JobBook& jobs;
  NodeBook& nodes;
  const PolicyBook& policy;
  const Report& report;
  const bool& ends_by_time;  // false: the wall clock cannot be trusted
};

// Returns what a job is judged against now.
inline JobContext context_of(const JobRecord& job, const PolicyBook& policy, NodeBook& nodes) {
  const OperatorParameters& parameters = policy.parameters();
  return {
      policy.configuration(), nodes.capacity(),
      nodes.unusable_for(*job.pod_template, job.object->spec, parameters.devices), parameters};
}

}  // namespace control
