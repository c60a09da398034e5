// Jobs with statuses as an operator writes them, for the tests of records.
#pragma once

#include <string>

#include "api/job.h"
#include "base/time.h"

namespace records::testing {

inline constexpr const char* kCluster = "kubegang";

inline base::Instant at(std::int64_t seconds) {
  return base::instant_from_micros(1'700'000'000'000'000 + seconds * 1'000'000);
}

// Returns a Job of namespace team-a with UID uid-NAME, submitted at 0, which waits.
inline kube::Job job_named(const std::string& name, std::int64_t id) {
  kube::Job job;
  job.metadata.ns = "team-a";
  job.metadata.name = name;
  job.metadata.uid = "uid-" + name;
  job.status.state = kube::JobState::kPending;
  job.status.job_id = id;
  job.status.submit_time = at(0);
  job.status.eligible_time = at(0);
  return job;
}

// Returns two nodes or one, of 4 CPUs each.
inline kube::Allocation on(const std::string& hostlist) {
  const int nodes = hostlist.find('[') == std::string::npos ? 1 : 2;
  return {.hostlist = hostlist, .nodes = nodes, .cpus = 4 * nodes};
}

}  // namespace records::testing
