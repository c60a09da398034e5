#include "cli/study/study.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "cli/scenario.h"
#include "cli/workload/trace_jobs.h"
#include "scheduler/simulate/totals.h"
#include "scheduler/simulate/what_if.h"

namespace cli {
namespace {

// Returns the figures of one simulation. Utilization counts all jobs until the last submission,
// because behind it the machine runs empty; the other figures leave the jobs of the warm-up out.
// Every job of such a simulation ends, hence the CHECK. The warm-up is kJobsOfWarmUp jobs, a
// tenth: they meet an empty machine and would make every policy look better than it is in the long
// run.
Figures figures_of(const WorkloadModel& model, const simulate::Scenario& scenario,
                   const simulate::WhatIf& result) {
  const base::Instant last = scenario.inputs.back().at;
  std::vector<Served> served;
  base::Duration used{0};
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    const int processors = scenario.jobs[i].request.tasks.value();
    for (const simulate::Placement& placement : result.jobs[i].placements) {
      used += processors * simulate::run_time(placement, placement.from, last);
    }
    if (i < kJobsOfWarmUp) continue;
    const std::optional<simulate::Service> service = simulate::service_of(result.jobs[i]);
    CHECK(service.has_value(), scenario.jobs[i].label);
    served.push_back({*service, processors});
  }
  return cli::figures_of(served, used, model.processors, last - base::Instant{});
}

}  // namespace

// Writes one CPU per node, so that a processor of the model is a node: the models know nothing of
// nodes with several processors. Without inputs: the jobs come from a trace.
std::string study_scenario(const WorkloadModel& model, const Policy& policy) {
  return "nodes:\n- {name: 'n[1-" + std::to_string(model.processors) +
         "]', cores: 1, memory: 1000}\nconf: {SelectType: select/linear, SchedulerType: " +
         std::string{policy.scheduler_type} + ", PreemptMode: '" +
         std::string{policy.preempt_mode} + "'}\npartitions:\n- {name: batch, Default: 'YES', " +
         "OverSubscribe: '" + std::string{policy.over_subscribe} + "'}\ninputs: []\n";
}

// Returns the mean over the seeds: in the trace of a single seed one large job at a bad moment
// moves the figures. The seeds are fixed, so the document's tables can be made again to the digit.
// All policies and loads get the same jobs of a seed: only their submit times are stretched. So two
// rows of a table differ by what is studied and not by chance.
//
// The CHECKs are on what this program has written itself.
Figures study(const WorkloadModel& model, const Policy& policy, double load) {
  Figures sum;
  for (const std::uint64_t seed : kSeeds) {
    base::Result<simulate::Scenario> scenario =
        read_scenario(study_scenario(model, policy), "study");
    CHECK(scenario.ok(), scenario.error().message);
    const SwfTrace trace = model.make({.seed = seed, .jobs_count = kJobsOfTrace, .load = load});
    // Without a load: the model has drawn its submit times for it.
    const base::Status added = add_trace(trace, std::nullopt, *scenario);
    CHECK(added.ok());
    const base::Result<simulate::WhatIf> result = simulate::run_what_if(*scenario);
    CHECK(result.ok());
    const Figures figures = figures_of(model, *scenario, *result);
    sum.response_mean += figures.response_mean;
    sum.slowdown_mean += figures.slowdown_mean;
    sum.wait_p95_short += figures.wait_p95_short;
    sum.wait_p95_wide += figures.wait_p95_wide;
    sum.utilization += figures.utilization;
  }
  constexpr double kCount = kSeeds.size();
  return {.response_mean = sum.response_mean / kCount,
          .slowdown_mean = sum.slowdown_mean / kCount,
          .wait_p95_short = sum.wait_p95_short / kCount,
          .wait_p95_wide = sum.wait_p95_wide / kCount,
          .utilization = sum.utilization / kCount};
}

// Returns a row of the table in Markdown; also what the program prints while it works.
std::string study_row(const Studied& studied) {
  const Figures& figures = studied.figures;
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "| %.2f | %s | %s | %.1f | %.1f %% | %s | %s |\n",
                studied.load, std::string{studied.policy}.c_str(),
                time_text(figures.response_mean).c_str(), figures.slowdown_mean,
                100 * figures.utilization, time_text(figures.wait_p95_short).c_str(),
                time_text(figures.wait_p95_wide).c_str());
  return line.data();
}

// Returns one row for each load and policy, in the order in which they were worked out. The text is
// Markdown.
std::string study_table(const std::vector<Studied>& all) {
  std::string text =
      "| Load | Scheduler | Mean response | Bounded slowdown | Utilization | 95 % wait, short "
      "jobs | 95 % wait, wide jobs |\n|---|---|---|---|---|---|---|\n";
  for (const Studied& studied : all) text += study_row(studied);
  return text;
}

}  // namespace cli
