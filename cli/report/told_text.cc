#include "cli/report/told_text.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "slurm/hostlist.h"

namespace cli {

// Only changes are shown. A step has the set of suspended jobs after it, so the lines about
// suspension are the differences from the step before. At the end stands how each job ended, in the
// order of the file.
// For example, of two gangs on the same nodes:
//
//      0.000  A starts in active on n[12-16]
//     10.000  B starts in active on n[12-16]
//     10.000  B is suspended
//     30.000  A is suspended
//     30.000  B is no longer suspended
std::string told_text(const simulate::Scenario& scenario, const simulate::ToldReport& report) {
  std::string text;
  std::vector<sched::JobId> before;
  for (const simulate::Step& step : report.steps) {
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%10.3f  ",
                  static_cast<double>(base::micros_since_epoch(step.at)) / 1e6);
    const auto add = [&](sched::JobId job, const std::string& what) {
      text += time.data() + scenario.job(job).label + " " + what + "\n";
    };
    for (const simulate::StartedJob& start : step.started) {
      std::vector<std::string> nodes;
      for (const simulate::PlacedNode& node : start.nodes) nodes.push_back(node.name);
      add(start.job, "starts in " + start.partition + " on " + slurm::compress_hostlist(nodes));
    }
    for (const simulate::Victim& victim : step.victims) {
      add(victim.job,
          victim.requeued ? "is requeued for another job" : "is canceled for another job");
    }
    // Before this step, and after it.
    const auto was = [&](sched::JobId job) {
      return std::find(before.begin(), before.end(), job) != before.end();
    };
    const auto is = [&](sched::JobId job) {
      return std::find(step.suspended.begin(), step.suspended.end(), job) != step.suspended.end();
    };
    for (const sched::JobId job : step.suspended) {
      if (!was(job)) add(job, "is suspended");
    }
    for (const sched::JobId job : before) {
      if (!is(job)) add(job, "is no longer suspended");
    }
    before = step.suspended;
  }
  text += "\n";
  for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
    if (!report.outcomes[i].submitted) continue;
    text += scenario.jobs[i].label + ": " +
            std::string{simulate::state_name(report.outcomes[i].state)} + ", " +
            std::to_string(report.outcomes[i].restarts) + " restarts\n";
  }
  return text;
}

}  // namespace cli
