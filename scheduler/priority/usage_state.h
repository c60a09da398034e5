// UsageState: what users and QOS have used (usage.h), as a caller keeps it outside the scheduler.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "scheduler/model/ids.h"

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
// How much of the run time of a job that is not over has been charged.
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

}  // namespace sched
