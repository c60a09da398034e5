// Priorities and shares as callers see them (chapter 9), for sprio's and sshare's tables. Parts of
// a whole are in billionths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/model/accounts.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/tres.h"
#include "scheduler/priority/usage_state.h"

namespace sched {

struct PriorityFactors {
  std::int64_t age = 0;
  std::int64_t association = 0;
  std::int64_t fair_share = 0;
  std::int64_t job_size = 0;
  std::int64_t partition = 0;
  std::int64_t qos = 0;
  PerTres<std::int64_t> tres;
  friend bool operator==(const PriorityFactors&, const PriorityFactors&) = default;
};

// A job's priority in one of its partitions, and where it comes from.
struct PriorityView {
  PartitionIndex partition;
  PriorityFactors factors;
  Priority priority;
};

// An account, or a user in one.
struct ShareView {
  std::string account;
  std::string user;    // empty: the account itself
  std::string parent;  // of an account; empty: the root
  Shares shares;
  std::int64_t shares_ppb = 0;  // the part of the whole cluster that is due to it
  Used used;
  std::int64_t usage_ppb = 0;            // its part of all usage
  std::int64_t effective_usage_ppb = 0;  // under the fair tree: of what its parent has used
  std::int64_t fair_share_ppb = 0;       // users alone
};

}  // namespace sched
