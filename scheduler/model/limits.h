// The limits of Slurm's resource-limits page, as a QOS or an association (an account, or a user in
// it) has them (1.4, 9.1). Nothing = unlimited. Names in sacctmgr's spelling beside each.
#pragma once

#include <optional>

#include "base/time.h"
#include "scheduler/model/tres.h"

namespace sched {

// A limit of 0 is a limit, and lets nothing through. Units are those of PerTres (memory in MiB).
struct Limits {
  // --- on what its jobs hold together; of an account: also those of the accounts below it ---
  TresLimits group_tres;                     // GrpTRES
  std::optional<int> group_jobs;             // GrpJobs: with an allocation
  std::optional<int> group_submit;           // GrpSubmitJobs: pending ones too
  std::optional<base::Duration> group_wall;  // GrpWall: run time of all of them, decayed

  // --- on each job ---
  TresLimits job_tres;                     // MaxTRESPerJob
  TresLimits node_tres;                    // MaxTRESPerNode
  std::optional<base::Duration> job_wall;  // MaxWallDurationPerJob
  TresLimits min_tres;                     // MinTRESPerJob; QOS only

  // --- on what the jobs of each user hold ---
  std::optional<int> user_jobs;    // MaxJobsPerUser; of an association MaxJobs
  std::optional<int> user_submit;  // MaxSubmitJobsPerUser; of an association MaxSubmitJobs
  TresLimits user_tres;            // MaxTRESPerUser; QOS only

  // --- on what the jobs of each account hold; QOS only ---
  std::optional<int> account_jobs;    // MaxJobsPerAccount
  std::optional<int> account_submit;  // MaxSubmitJobsPerAccount
  TresLimits account_tres;            // MaxTRESPerAccount

  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace sched
