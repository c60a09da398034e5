// Jobs that only ask when and where they would start (spec.testOnly).
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kube/testing/manual_clock.h"
#include "simulation/ledger.h"
#include "simulation/ledger_terms.h"

namespace simulation {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Questions are answered one after the other.
constexpr Time kAnsweredWithin = seconds{20};
// An answer stays for a minute by the operator's clock; a deletion that fails is repeated a minute
// later.
constexpr Time kStaysFor = minutes{1};
constexpr Time kGoneWithin = 2 * kStaysFor + seconds{20};
// For times in whole seconds, and the drift of a clock.
constexpr Time kSlack = seconds{5};

// Returns the name of the job in the plan that the question is about: "job-1" for
// "job-1-asks-4000".
std::string asked_about(const kube::Job& question) {
  return question.metadata.name.substr(0, question.metadata.name.find("-asks-"));
}

}  // namespace

// It is never run, gets one answer, and is deleted when that has been there for a minute.
void Ledger::on_question(const std::string& type, kube::Job job) {
  const std::string name = job.metadata.name;
  const bool is_judged = now_ >= restored_at_ + kAfterRestore;
  ++tally_.looked["forecast"];
  if (type == "DELETED") {
    const auto known = questions_.find(job.metadata.uid);
    if (known == questions_.end()) return;
    const auto forecast = known->second.status.forecast;
    questions_.erase(known);
    if (!is_judged || deleted_by_user_.contains(name)) return;
    if (!forecast) return find("forecast", "job " + name + " is deleted and has no answer");
    // It counts from when the answer was made, by the operator's clock; storing it may take long.
    const Time made_at = forecast->as_of.value_or(base::Instant{}) - kube::ManualClock::kStart;
    if (now_ + clock_steps_ + kSlack < made_at + kStaysFor && now_ > faults_until_) {
      find("forecast", "the answer of " + name + " is deleted after " + text_of(now_ - made_at));
    }
    return;
  }
  const kube::JobStatus& status = job.status;
  if (status.state || status.allocation || status.job_id || status.starts) {
    find("forecast", "job " + name + " only asks, and is " + state_of(job));
  }
  kube::Job& known = questions_[job.metadata.uid];
  const auto before = std::exchange(known, std::move(job)).status.forecast;
  const auto& forecast = known.status.forecast;
  if (before && is_judged && !(before == forecast)) {
    find("forecast", "job " + name + " has another answer than before");
  }
  if (forecast && !before) check_answer(known);
}

// An answer names an instant that has not passed and nodes on which the job may run, or says why
// there are none.
void Ledger::check_answer(const kube::Job& job) {
  const kube::JobForecast& forecast = *job.status.forecast;
  const std::string text = "the answer of " + job.metadata.name + " ";
  const auto plan = std::find_if(plan_.jobs.begin(), plan_.jobs.end(),
                                 [&](const JobPlan& one) { return one.name == asked_about(job); });
  if (plan == plan_.jobs.end()) return;
  if (!forecast.start_time) {
    if (forecast.message.empty()) find("forecast", text + "says neither when nor why not");
    return;
  }
  ++tally_.looked["forecast of a start"];
  if (plan->wrong) find("forecast", text + "tells a start in a partition that does not exist");
  if (forecast.as_of && *forecast.start_time + seconds{1} < *forecast.as_of) {
    find("forecast", text + "tells a start that is over");
  }
  const std::set<std::string> nodes =
      nodes_of({.hostlist = forecast.hostlist, .shares = {{.hostlist = forecast.hostlist}}});
  if (static_cast<int>(nodes.size()) != forecast.nodes || forecast.nodes < plan->nodes) {
    return find("forecast", text + "names the nodes " + forecast.hostlist + ", and says " +
                                std::to_string(forecast.nodes) + " of " +
                                std::to_string(plan->nodes));
  }
  for (const std::string& node : nodes) {
    if (plan->rack.empty() || plan->rack == rack_of(node)) continue;
    find("forecast", text + "names " + node + ", its nodeSelector wants the rack " + plan->rack);
  }
}

void Ledger::sample_questions() {
  for (const auto& [uid, job] : questions_) {
    const std::string& name = job.metadata.name;
    const bool is_answered = job.status.forecast.has_value();
    const Time waits = streak("unanswered " + uid, operator_is_well_ && !is_answered);
    if (waits > kAnsweredWithin) {
      find("forecast", "job " + name + " has no answer for " + text_of(waits));
    }
    const Time stays = streak("answered " + uid, operator_is_well_ && is_answered);
    if (stays > kGoneWithin + clock_steps_) {
      find("forecast", "job " + name + " is there " + text_of(stays) + " after its answer");
    }
  }
}

}  // namespace simulation
