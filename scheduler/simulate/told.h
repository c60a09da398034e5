// A scenario with told timing: each input is one step, and what the scheduler decides in it is
// compared with what a real Slurm decided on the same inputs (scheduler/testdata/conformance).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/model/ids.h"
#include "scheduler/model/job.h"
#include "scheduler/simulate/scenario.h"

namespace simulate {

struct PlacedNode {
  std::string name;
  std::string cpus;  // Slurm's CPU ids
  sched::MemoryMiB memory{0};
  sched::Devices devices{};
  friend bool operator==(const PlacedNode&, const PlacedNode&) = default;
};

struct StartedJob {
  sched::JobId job;
  std::string partition;
  std::vector<PlacedNode> nodes;  // in node order
  friend bool operator==(const StartedJob&, const StartedJob&) = default;
};

struct Victim {
  sched::JobId job;
  bool requeued = false;  // else canceled
  friend bool operator==(const Victim&, const Victim&) = default;
};

// When a job that waits is expected to start.
struct ExpectedStart {
  sched::JobId job;
  std::optional<base::Instant> at;  // nullopt = it is not known any longer
  friend bool operator==(const ExpectedStart&, const ExpectedStart&) = default;
};

struct Step {
  base::Instant at{};
  std::vector<StartedJob> started;      // in the order of the decisions
  std::vector<Victim> victims;          // that have to end; a suspended victim is in `suspended`
  std::vector<sched::JobId> suspended;  // after the step, by whatever
  // Multifactor: what the job got that this step submitted.
  std::optional<sched::Priority> priority;
  std::vector<ExpectedStart> expected;  // starts that were updated
  friend bool operator==(const Step&, const Step&) = default;
};

struct JobOutcome {
  sched::JobState state = sched::JobState::kPending;
  int restarts = 0;
  bool submitted = false;
  friend bool operator==(const JobOutcome&, const JobOutcome&) = default;
};

struct ToldReport {
  std::vector<Step> steps;           // one per input
  std::vector<JobOutcome> outcomes;  // one per job of the scenario
};

// JobReady follows each start within the same step; the lead is 0; after `cancel` and `requeue` the
// job's processes are gone at once. REQUIRES: a legal configuration.
ToldReport run_told(const Scenario& scenario);

}  // namespace simulate
