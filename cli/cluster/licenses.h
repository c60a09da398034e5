// `kubectl gang licenses`: how many licenses there are, how many jobs hold, and who waits for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/scheduler_config.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

struct LicenseLine {
  std::string name;
  std::int64_t total = 0;
  std::int64_t used = 0;
  std::vector<const kube::Job*> waiting{};  // for it, in the order of their numbers

  // An administrator may have lowered the total below what is in use.
  std::int64_t free() const { return used < total ? total - used : 0; }
};

// Returns one for each license of the cluster, by name. `jobs` must live longer.
std::vector<LicenseLine> license_lines(const kube::SchedulerConfig& config,
                                       const std::vector<kube::Job>& jobs);

// Refuses a license that the cluster does not have, or has fewer of, in Slurm's words.
base::Status check_licenses(const Session& session, const kube::JobResources& asked);

// The objects behind the lines. A user who may not read the jobs of all namespaces gets those of
// one, and stderr says so.
struct LicenseObjects {
  kube::SchedulerConfig config;  // empty if there is none
  std::vector<kube::Job> jobs;
};
base::Result<LicenseObjects> read_licenses(const Session& session, Output output);

struct LicensesOptions {
  bool json = false;
};
int run_licenses(const Session& session, const LicensesOptions& options, Output output);

}  // namespace cli
