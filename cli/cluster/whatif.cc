#include "cli/cluster/whatif.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/after_submit.h"
#include "cli/cluster/user.h"
#include "cli/yaml_text.h"
#include "kube/api/codec.h"
#include "kube/api/time_format.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

// The answer is seen at most a tenth later than it is there, or 10 ms.
constexpr base::Duration kPollEveryMin = std::chrono::milliseconds{10};
constexpr base::Duration kPollEveryMax = std::chrono::milliseconds{500};
constexpr int kPollPart = 10;
constexpr base::Duration kWaitMax = std::chrono::seconds{30};

base::Duration poll_after(base::Duration waited) {
  return std::clamp(waited / kPollPart, kPollEveryMin, kPollEveryMax);
}

base::Error too_old(const std::string& what) {
  return base::Error{base::Code::kUnavailable,
                     what + " does not know spec.testOnly: upgrade kubegang there"};
}

std::string counted(int count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Returns "2026-01-01T00:10:00Z, in 10:00".
std::string start_text(base::Instant at, base::Instant now) {
  const base::Duration left = std::chrono::round<std::chrono::seconds>(at - now);
  return "at " + kube::format_time(at) +
         (left > base::Duration{0} ? ", in " + slurm::format_run_time(left) : "");
}

// Returns "It would suspend 2 jobs and requeue 1 job: train and 2 more jobs."
std::string stops_text(const kube::ForecastStops& stops) {
  std::string text;
  for (const auto& [verb, count] : {std::pair{"suspend", stops.suspended},
                                    std::pair{"requeue", stops.requeued},
                                    std::pair{"cancel", stops.cancelled}}) {
    if (count == 0) continue;
    text += (text.empty() ? "" : " and ") + std::string{verb} + " " + counted(count, "job");
  }
  return "It would " + text + ": " + preempted_text(stops) + ".\n";
}

void print_answer(const kube::JobForecast& answer, base::Instant now, Output output) {
  if (!answer.start_time) {
    output.out << "It would not start: " << answer.message << "\n";
    return;
  }
  const bool at_once = *answer.start_time <= answer.as_of.value_or(now);
  output.out << "It would start " << (at_once ? "now" : start_text(*answer.start_time, now))
             << ", in partition " << answer.partition << ", on " << answer.hostlist << " ("
             << counted(answer.nodes, "node") << ", " << counted(answer.cpus, "CPU") << ").\n";
  output.out << (answer.stops ? stops_text(*answer.stops) : "It would stop no other job.\n");
}

}  // namespace

// Those of this namespace are named up to a bound.
std::string preempted_text(const kube::ForecastStops& stops) {
  std::string text;
  for (const std::string& name : stops.jobs) text += (text.empty() ? "" : ", ") + name;
  const int all = stops.suspended + stops.requeued + stops.cancelled;
  const int unnamed = all - static_cast<int>(stops.jobs.size());
  if (unnamed <= 0) return text;
  if (text.empty()) return counted(unnamed, "job") + " in other namespaces";
  return text + " and " + counted(unnamed, "more job");
}

// 1. The API server may be older, and leave the field out: a dry run shows it, and nothing is made
//    that would run.
// 2. So may be the operator, which would run the job: its status has a state then.
base::Result<kube::Job> ask_operator(const Session& session, kube::Job question) {
  question.spec.test_only = true;
  const auto tried = session.client.create<kube::Job>(question, {.dry_run = true});
  if (!tried) return tried.error();
  if (!tried->spec.test_only.value_or(false)) return too_old("the API server");
  const auto created = session.client.create<kube::Job>(question);
  if (!created) return created.error();
  const kube::ObjectKey key = kube::key_of(created->metadata);
  const base::Duration begin = session.clock.monotonic();
  base::Result<kube::Job> answer = base::Error{
      base::Code::kUnavailable, "no operator has answered within 30 s; is one running?"};
  for (base::Duration waited{0}; waited < kWaitMax; waited = session.clock.monotonic() - begin) {
    auto job = session.client.get<kube::Job>(key);
    if (job && job->status.forecast) {
      answer = std::move(job);
      break;
    }
    if (job && job->status.state) answer = too_old("the operator");
    if (!job && !is_outage(job.error())) answer = job.error();
    if ((job && job->status.state) || (!job && !is_outage(job.error()))) break;
    if (const base::Status slept = session.sleeper.sleep(poll_after(waited), {}); !slept) {
      answer = slept.error();
      break;
    }
  }
  // The operator deletes it, too, if this user may not.
  (void)take_back(session, *created);
  return answer;
}

int run_whatif(const Session& session, const SubmitArguments& arguments,
               const SubmitRequest& request, Output output) {
  base::Result<kube::Job> job = job_object(request, session.ns);
  if (job) {
    set_user(session, *job);
    job = ask_operator(session, std::move(*job));
  }
  if (!job) {
    output.err << "kubectl-gang whatif: " << job.error().message << "\n";
    return kExitFailed;
  }
  switch (arguments.output) {
    case SubmitOutput::kJson:
      output.out << kube::encode(*job).dump(2) << "\n";
      break;
    case SubmitOutput::kYaml:
      output.out << yaml_text(kube::encode(*job));
      break;
    case SubmitOutput::kSentence:
    case SubmitOutput::kName:
    case SubmitOutput::kNumber:
      print_answer(*job->status.forecast, session.clock.wall(), output);
      break;
  }
  return job->status.forecast->start_time ? kExitOk : kExitFailed;
}

std::string whatif_help() {
  return R"(Say when and where a job would start, and which jobs would be stopped for it.

Usage: kubectl gang whatif [OPTIONS] [SCRIPT]

OPTIONS are those of submit (kubectl gang submit --help). Nothing is run: the
operator goes on with a copy of what it knows, in which all jobs use up their
time limits and nothing else happens, for up to 7 days. Jobs of other namespaces
are counted and not named. -o json and -o yaml print the answer as an object
(status.forecast).

The exit code is 1 if the job would not start, or if no operator answers within
30 s.

For example, four nodes for two hours:
  kubectl gang whatif -N 4 -t 2:00:00
)";
}

}  // namespace cli
