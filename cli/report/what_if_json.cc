#include "cli/report/what_if_json.h"

#include <nlohmann/json.hpp>

#include "cli/report/what_if_text.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

// JSON has seconds with fractions; the simulation counts microseconds.
double seconds(base::Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}
// Simulated instants count from the begin of the scenario.
double seconds(base::Instant t) {
  return seconds(t - base::Instant{});
}
// null is what has not happened: not submitted, or not ended.
Json seconds_or_null(const std::optional<base::Instant>& t) {
  return t ? Json(seconds(*t)) : Json(nullptr);
}

// Returns a job's history: each placement with the time that it really ran there, which is less
// than its length if jobs took turns. A placement that has not ended when the simulation does has
// no `to`. runSeconds of the job is the sum over its placements. Reason and message are those of
// the last wait, and only of a job that waits at the end.
Json job_json(const simulate::Scenario& scenario, const simulate::JobHistory& job,
              base::Instant end) {
  Json placements = Json::array();
  base::Duration ran{0};
  for (const simulate::Placement& placement : job.placements) {
    // Up to the end of the simulation; behind the end of the placement nothing is added.
    const base::Duration run = simulate::run_time(placement, placement.from, end);
    ran += run;
    placements.push_back(
        {{"from", seconds(placement.from)},
         {"to", placement.to == base::kNever ? Json(nullptr) : Json(seconds(placement.to))},
         {"partition", placement.partition},
         {"nodeList", node_list(scenario, placement)},
         {"runSeconds", seconds(run)}});
  }
  Json json = {{"state", simulate::state_name(job.state)},
               {"restarts", job.restarts},
               {"submit", seconds_or_null(job.submitted)},
               {"end", seconds_or_null(job.ended)},
               {"runSeconds", seconds(ran)},
               {"preempted", job.was_preempted},
               {"placements", placements}};
  if (job.refusal) {
    json["reason"] = "Refused";
    json["message"] = *job.refusal;
  } else if (job.state == sched::JobState::kPending && !job.waits.empty()) {
    json["reason"] = simulate::reason_name(job.waits.back().reason);
    json["message"] = job.waits.back().message;
  }
  return json;
}

// Returns the queue as it was at t. A job that has no nodes at t has an empty nodeList.
// Jobs that were not submitted yet or have ended are not in it, as in the text.
Json queue_json(const simulate::Scenario& scenario, const simulate::WhatIf& result,
                base::Instant t) {
  Json jobs = Json::array();
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    const std::optional<simulate::QueueRow> row = simulate::queue_row(result.jobs[i], t);
    if (!row) continue;
    jobs.push_back({{"job", scenario.jobs[i].label},
                    {"state", simulate::state_code(row->state)},
                    {"runSeconds", seconds(row->run_time)},
                    {"nodeList", row->placement != nullptr ? node_list(scenario, *row->placement)
                                                           : std::string{}},
                    {"reason", simulate::reason_name(row->reason)},
                    {"message", row->message}});
  }
  return {{"t", seconds(t)}, {"jobs", jobs}};
}

// Returns the figures of a distribution of times, in seconds: mean, median, and two of the upper
// end, where the jobs are that users complain of.
Json spread_json(const simulate::Totals::Spread& spread) {
  return {{"mean", seconds(spread.mean)},
          {"median", seconds(spread.median)},
          {"p95", seconds(spread.p95)},
          {"max", seconds(spread.max)}};
}

// Does the same for slowdowns, which have no unit.
Json slowdown_json(const simulate::Totals::Slowdown& milli) {
  const auto ratio = [](std::int64_t value) { return static_cast<double>(value) / 1'000; };
  return {{"mean", ratio(milli.mean)},
          {"median", ratio(milli.median)},
          {"p95", ratio(milli.p95)},
          {"max", ratio(milli.max)}};
}

}  // namespace

// Jobs are keyed by their labels, which are unique in a scenario. Keys stand in the order in which
// they are written here, so two runs can be compared as text.
std::string what_if_json(const simulate::Scenario& scenario, const simulate::WhatIf& result,
                         std::span<const base::Instant> at) {
  Json json = {{"scenario", scenario.name}, {"jobs", Json::object()}, {"queues", Json::array()}};
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    if (scenario.jobs[i].request.array) continue;  // its tasks are there
    json["jobs"][scenario.jobs[i].label] = job_json(scenario, result.jobs[i], result.end);
  }
  // Keeps the order of --at, also if that is not ascending.
  for (const base::Instant t : at) json["queues"].push_back(queue_json(scenario, result, t));
  const simulate::Totals& totals = result.totals;
  // The same figures as in the text, without its rounding (totals_text says what each is).
  json["totals"] = {{"seconds", seconds(totals.span)},
                    {"cpuSeconds", totals.cpu_seconds},
                    {"usedCPUSeconds", totals.used_cpu_seconds},
                    {"ended", totals.finished},
                    {"requeues", totals.requeues},
                    {"preemptedJobs", totals.preempted_jobs},
                    {"wait", spread_json(totals.wait)},
                    {"response", spread_json(totals.response)},
                    {"slowdown", slowdown_json(totals.slowdown_milli)}};
  return json.dump(1) + "\n";
}

}  // namespace cli
