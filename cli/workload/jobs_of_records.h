// Turns records of kubegang-records into jobs of a scenario: a site's own past, played again on the
// cluster and under the configuration of the scenario.
#pragma once

#include <span>

#include "base/result.h"
#include "cli/report/figures.h"
#include "records/record.h"
#include "scheduler/simulate/scenario.h"

namespace cli {

struct RecordedPast {
  std::size_t first = 0;             // of the scenario's jobs
  std::vector<std::int64_t> cpus{};  // that each got, from that one on
  std::vector<Served> served{};      // how it was for each of them
  base::Duration used{};             // CPU time until the last submission
  base::Duration span{};             // from the first submission to the last
};

// Adds the jobs behind those that the scenario has, and their submissions to its inputs. Each job,
// or task of an array, is submitted when it could start at first; it works for as long as its last
// run did. User, account, partition and QOS are its own where the scenario has them: other accounts
// and QOS are left out, and other partitions are the default one. Licenses, devices, constraints
// and dependencies are not played; a warning of the scenario counts the jobs that asked for them,
// and those that are left out: they have not run, or have not ended. kInvalidArgument: there are
// none; a user is not among the scenario's users.
base::Result<RecordedPast> add_records(std::span<const records::Record> records,
                                       simulate::Scenario& scenario);

}  // namespace cli
