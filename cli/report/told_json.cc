#include "cli/report/told_json.h"

#include <nlohmann/json.hpp>

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

double seconds_of(base::Instant at) {
  return static_cast<double>(base::micros_since_epoch(at)) / 1e6;
}

// Returns one step in the form of the recordings: what it started and where, what it preempted,
// the priority that a submission got, the jobs that are suspended after it, and the
// expected starts that were updated. Parts without content are left out, except
// `suspended`: an empty list says that nothing is suspended, which a comparison needs to
// know. For example
//
//   {"t":30.0,"suspended":["A"]}
//
// is a slice that has ended: A had its turn, and whatever else has nodes runs now.
Json step_json(const simulate::Scenario& scenario, const simulate::Step& step) {
  const auto label = [&](sched::JobId id) { return scenario.job(id).label; };
  Json out = {{"t", seconds_of(step.at)}};
  for (const simulate::StartedJob& start : step.started) {
    Json nodes = Json::object(), devices = Json::object();
    for (const simulate::PlacedNode& node : start.nodes) {
      nodes[node.name] = {{"cpus", node.cpus}, {"memory", node.memory.value()}};
      for (const sched::DeviceCount& held : node.devices) {
        const std::string type = held.kind.type.empty() ? "" : ":" + held.kind.type;
        devices[node.name][held.kind.name + type] = held.count;
      }
    }
    Json started = {{"job", label(start.job)}, {"partition", start.partition}, {"nodes", nodes}};
    if (!devices.empty()) started["gres"] = devices;
    out["start"].push_back(std::move(started));
  }
  for (const simulate::Victim& victim : step.victims) {
    out["preempt"].push_back(
        {{"job", label(victim.job)}, {"mode", victim.requeued ? "requeue" : "cancel"}});
  }
  if (step.priority) out["priority"] = step.priority->value();
  out["suspended"] = Json::array();
  for (const sched::JobId id : step.suspended) out["suspended"].push_back(label(id));
  // null: the job had an expected start before and has none now.
  for (const simulate::ExpectedStart& expected : step.expected) {
    out["expected"][label(expected.job)] = expected.at ? Json(seconds_of(*expected.at)) : Json();
  }
  return out;
}

}  // namespace

// Returns a line for each step, so that a difference between two runs is a difference of lines.
std::string told_json(const simulate::Scenario& scenario, const simulate::ToldReport& report) {
  Json jobs = Json::object();
  for (std::size_t i = 0; i < report.outcomes.size(); ++i) {
    const simulate::JobOutcome& outcome = report.outcomes[i];
    if (!outcome.submitted) continue;
    jobs[scenario.jobs[i].label] = {{"state", simulate::state_name(outcome.state)},
                                    {"restarts", outcome.restarts}};
  }
  std::string text = "{\"scenario\": " + Json(scenario.name).dump() +
                     ",\n \"jobs\": " + jobs.dump() + ",\n \"steps\": [";
  for (std::size_t i = 0; i < report.steps.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") + step_json(scenario, report.steps[i]).dump();
  }
  return text + "\n ]}\n";
}

}  // namespace cli
