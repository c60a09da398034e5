// Does it help? Four ways to schedule on workloads of two models, over a range of loads, in virtual
// time. docs/does-it-help.md shows what comes out; `make does-it-help` writes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/figures.h"
#include "cli/workload/models.h"

namespace cli {

struct Policy {
  std::string_view name;
  std::string_view scheduler_type;  // keys of slurm.conf …
  std::string_view preempt_mode;
  std::string_view over_subscribe;  // … and of the partition
};
inline constexpr std::array<Policy, 4> kPolicies = {
    {{"FIFO", "sched/builtin", "OFF", "NO"},
     {"backfill", "sched/backfill", "OFF", "NO"},
     {"gang", "sched/builtin", "GANG", "FORCE:4"},
     {"gang + backfill", "sched/backfill", "GANG", "FORCE:4"}}};

inline constexpr std::array<WorkloadModel, 2> kStudiedModels = {kLublinFeitelson, kCtcLike};
inline constexpr std::array<double, 5> kLoads = {0.6, 0.7, 0.8, 0.9, 0.95};
// The figures are means over traces of these seeds.
inline constexpr std::array<std::uint64_t, 3> kSeeds = {1, 2, 3};
inline constexpr int kJobsOfTrace = 2'000;
// Not counted: the first jobs find an empty machine.
inline constexpr int kJobsOfWarmUp = 200;

// Returns the cluster and the configuration as a scenario file without jobs: a node of one CPU for
// each processor.
std::string study_scenario(const WorkloadModel& model, const Policy& policy);

// Figures of the jobs behind the warm-up, over a trace of each seed. Seconds of work.
Figures study(const WorkloadModel& model, const Policy& policy, double load);

// --- what the document shows ---

struct Studied {
  double load = 0;
  std::string_view policy;
  Figures figures;
};
std::string study_table(const std::vector<Studied>& all);
std::string study_row(const Studied& studied);
// Four panels: response, slowdown, and both waits over the load.
std::string study_svg(const WorkloadModel& model, const std::vector<Studied>& all);

}  // namespace cli
