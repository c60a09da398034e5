// JobParts: what all parts that do something about a job work with: Wishes, Decisions, GangRunner,
// PodWrites. What only some of them need is a constructor parameter of its own.
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

}  // namespace control
