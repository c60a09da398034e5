#include "cli/cluster/control.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cluster/read.h"

namespace cli {
namespace {

// For the line that says what was done, in kubectl's manner: "job.kubegang.io/a suspended".
const char* past_tense(ControlVerb verb) {
  switch (verb) {
    case ControlVerb::kSuspend:
      return "suspended";
    case ControlVerb::kResume:
      return "resumed";
    case ControlVerb::kCancel:
      return "canceled";
    case ControlVerb::kRequeue:
      return "requeued";
    case ControlVerb::kHold:
      return "held";
    case ControlVerb::kRelease:
      return "released";
  }
  return "changed";
}

// Returns true if the job has nodes. A suspended job keeps them.
bool is_allocated(const kube::Job& job) {
  return job.status.state == kube::JobState::kRunning ||
         job.status.state == kube::JobState::kSuspended;
}

// Returns the next value of a request counter. requeue and release are events, not states: each
// request raises a counter in the spec, and the operator copies it to status.observed when it has
// carried it out. One above the larger of the two is a new request, even if the spec was replaced
// by a manifest without the counter.
std::int64_t raised(const std::optional<std::int64_t>& asked, std::int64_t done) {
  return std::max(asked.value_or(0), done) + 1;
}

// Returns the change of spec.control, or why it makes no sense in the job's state (R2.3, 13.2). The
// operator would refuse or ignore it, too, but only here the user is still there to read it. The
// result is a merge patch of spec.control. A release takes back both kinds of hold: the user's by
// the field, the operator's by a request.
// A second suspend, hold or cancel writes what is there already: it is no error, as with kubectl.
base::Result<nlohmann::json> control_change(const kube::Job& job, ControlVerb verb) {
  const kube::JobObserved done = job.status.observed.value_or(kube::JobObserved{});
  if (job.status.state && kube::is_final(*job.status.state)) {
    return base::invalid_argument("it has ended (" + std::string{to_string(*job.status.state)} +
                                  ")");
  }
  switch (verb) {
    case ControlVerb::kSuspend:
      return nlohmann::json{{"suspend", true}};
    case ControlVerb::kResume:
      if (!job.spec.control.suspend.value_or(false)) {
        return base::invalid_argument("it is not suspended by its user");
      }
      return nlohmann::json{{"suspend", false}};
    case ControlVerb::kCancel:
      return nlohmann::json{{"cancel", true}};
    case ControlVerb::kRequeue:
      if (!is_allocated(job)) return base::invalid_argument("it does not run");
      return nlohmann::json{
          {"requeueRequest", raised(job.spec.control.requeue_request, done.requeue_request)}};
    case ControlVerb::kHold:
      if (is_allocated(job)) {
        return base::invalid_argument("the job is running; use kubectl gang suspend");
      }
      return nlohmann::json{{"hold", true}};
    case ControlVerb::kRelease: {
      if (!job.status.held && !job.spec.control.hold.value_or(false)) {
        return base::invalid_argument("it is not held");
      }
      nlohmann::json change = {{"hold", false}};
      if (job.status.held) {
        change["releaseRequest"] = raised(job.spec.control.release_request, done.release_request);
      }
      return change;
    }
  }
  return base::invalid_argument("unknown command");
}

// Reads the job, works out the change, and writes it on the condition that the job has not changed
// in between. After a conflict it starts anew. The UID is a condition as well: a job that was
// deleted and made anew under its name is another job, and the user did not mean it.
// The operator writes the status of a job that starts or ends, and each write is a new version, so
// a conflict is nothing unusual.
base::Result<kube::Job> change_job(const Session& session, ControlVerb verb,
                                   const std::string& name, Output output) {
  // The counters are relative, so a change in between is read again.
  constexpr int kTriesMax = 5;
  base::Result<kube::Job> job = find_job(session, name, output);
  for (int attempt = 0; job.ok(); ++attempt) {
    const base::Result<nlohmann::json> change = control_change(*job, verb);
    if (!change) return change.error().with_context("job " + name);
    base::Result<kube::Job> changed = session.client.patch<kube::Job>(
        kube::key_of(job->metadata), nlohmann::json{{"spec", {{"control", *change}}}},
        {.resource_version = job->metadata.resource_version, .uid = job->metadata.uid});
    if (changed || changed.error().code != base::Code::kConflict || attempt + 1 == kTriesMax) {
      return changed;
    }
    job = find_job(session, name, output);
  }
  return job;
}

}  // namespace

// Every job is tried, also after one has failed: `cancel a b c` with a misspelled b must not leave
// c running. The exit code tells that one failed.
int run_control(const Session& session, ControlVerb verb, const std::vector<std::string>& jobs,
                Output output) {
  int code = kExitOk;
  for (const std::string& name : jobs) {
    const base::Result<kube::Job> changed = change_job(session, verb, name, output);
    if (changed) {
      output.out << "job.kubegang.io/" << changed->metadata.name << " " << past_tense(verb)
                 << of_batch_job(*changed) << "\n";
    } else {
      output.err << "kubectl-gang: " << changed.error().message << "\n";
      code = kExitFailed;
    }
  }
  return code;
}

}  // namespace cli
