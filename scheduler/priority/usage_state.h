// UsageState: what users and QOS have used (usage.h), as a caller keeps it outside the scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"
#include "scheduler/model/job.h"

namespace sched {

struct Used {
  std::int64_t billed = 0;      // thousandths of billing units × seconds
  std::int64_t wall_milli = 0;  // run time of all its jobs, in milliseconds
  friend bool operator==(const Used&, const Used&) = default;
};
struct UserUsage {
  std::string account;
  std::string user;
  Used used;
  friend bool operator==(const UserUsage&, const UserUsage&) = default;
};
struct QosUsage {
  std::string qos;
  Used used;
  friend bool operator==(const QosUsage&, const QosUsage&) = default;
};
// A job that has nodes, and how much of its run time has been charged.
struct JobCharged {
  JobId job;
  base::Duration run{};
  friend bool operator==(const JobCharged&, const JobCharged&) = default;
};
struct UsageState {
  base::Instant as_of{};  // when the last period ended
  std::vector<UserUsage> users;
  std::vector<QosUsage> qos;
  std::vector<JobCharged> jobs;
  friend bool operator==(const UsageState&, const UsageState&) = default;
};

// A job that has ended since the state was saved. The part of its last run that had not been
// charged then is still to be charged.
struct EndedJob {
  JobRequest request;
  PartitionIndex partition;
  Allocation allocation;     // of nodes that exist
  base::Duration run{};      // of its last run, in all
  base::Duration charged{};  // of it, when the state was saved
};

}  // namespace sched
